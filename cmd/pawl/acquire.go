package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/internal/access"
)

type acquireFlags struct {
	claimFlags
	file   string
	asJSON bool
}

func newAcquire(v *output, loc *location) *cobra.Command {
	f := &acquireFlags{claimFlags: newClaimFlags(10 * time.Minute)}
	cmd := &cobra.Command{
		Use:   "acquire [flags] NAME",
		Short: "Take a lock and leave it held, for later steps",
		Long: `Acquire waits for the lock NAME, first come, first served, prints a handle and
ends. The lock stays held for --ttl. With the handle, pawl renew renews it, and
pawl release ends it. If a single command needs the lock, pawl run is simpler
and safer: it stops the command when the lock is lost.

The handle is a secret: any process that has it can release the lock. Pass it on
by a file or a pipe, not as an argument, which others can read. --handle writes
it to a file for this user only, and prints nothing. It replaces no file, except
one with a handle whose lease this database knows to be over.

With --json it prints one object: name, fence (the fencing token), handle
(without --handle FILE), and expires_in_ms: for how long it can be relied on.

The exit code is 0, or:
   64  wrong usage; nothing was done
   69  the database is unavailable or too slow
   75  the lock was not acquired (-E changes this code)
   76  the lock was lost before the handle was printed`,
		Example: `  # In the steps of a CI job:
  pawl acquire -w 10m --handle lock deploy
  pawl renew --handle lock
  pawl release --handle lock
  # The same with a variable.
  handle=$(pawl acquire deploy)
  printf %s "$handle" | pawl release`,
		Args: cobra.MatchAll(oneName, func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("handle") && f.file == "" {
				return usageError(cmd, errors.New("--handle is empty"))
			}
			return f.check(cmd, args[0])
		}),
		ValidArgsFunction: completeName(loc),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(v, loc, cmd, args[0])
		},
	}
	f.addFlags(cmd, "how long the lock stays held if it is not renewed", "keep the lock for at least this long, even if it is released sooner")
	cmd.Flags().StringVar(&f.file, "handle", "", "write the handle to this `FILE`, which only this user can read")
	completeFiles(cmd, "handle")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one object of JSON")
	return cmd
}

func (f *acquireFlags) run(v *output, loc *location, cmd *cobra.Command, name string) (err error) {
	url, byDefault, err := loc.findURL(cmd)
	if err != nil {
		return err
	}
	if isMemory(url) {
		return usageError(cmd, errors.New("mem: keeps locks in the memory of this process, which ends; nothing would stay held"))
	}
	v.neverBlock()
	a := &acquireCommand{job: f.job(v, loc, url, byDefault, name), asJSON: f.asJSON}
	claim := f.acquireFunc(name, f.lockOptions(0))
	a.acquire = claim
	if f.file != "" {
		if a.file, err = newHandleFile(f.file); err != nil {
			return usageError(cmd, fmt.Errorf("--handle %s: %w", words.QuoteIfNeeded(f.file), err))
		}
		defer a.file.discard()
		a.acquire = func(ctx context.Context, c *pawl.Client) (jobLease, error) {
			if err := a.file.checkReplaceable(ctx, c, loc); err != nil {
				return nil, err
			}
			return claim(ctx, c)
		}
	}
	return f.conflictError(a.run())
}

// checkReplaceable refuses to replace the handle of a lease that is still held, because
// no command could release that lease any more. Attaching renews a lease, so the check
// attaches the handle only after Inspect has shown that the lease is over. Otherwise a
// job that retries would keep a dead job's lease alive.
//
// The lease may also be held in another schema or under another prefix, which a handle
// may not contain. Fences only rise, so if the last fence of the name is smaller, the
// lease was never in this database. If the name has no fence, the database may have
// deleted it; then the check allows the replacement of an old handle.
func (h *handleFile) checkReplaceable(ctx context.Context, c *pawl.Client, loc *location) error {
	if h.oldHandle == "" {
		return nil
	}
	stored, fence := access.LeaseOf(h.oldHandle) // Attach refuses text that is no handle
	name := loc.withoutNamespace(stored)
	e, inspectErr := c.Inspect(ctx, name)
	if inspectErr != nil && !errors.Is(inspectErr, pawl.ErrInvalid) {
		return inspectErr
	}
	for _, holder := range e.Holders {
		if holder.Fence == fence && !holder.Released {
			return h.stillHeld(name, fence)
		}
	}
	lease, err := c.Attach(ctx, pawl.Handle(h.oldHandle))
	lost, isLost := errors.AsType[*pawl.LostError](err)
	switch {
	case isLost && lost.Err != nil: // the handle is from another server, where the lease may be held
		return notAcquiredError{fmt.Errorf("--handle %s: cannot be replaced: %w; remove the file if that lease is over", words.QuoteIfNeeded(h.path), lost.Err)}
	case isLost && inspectErr != nil:
		return inspectErr
	case isLost && (e.Fence >= fence || e.Fence == 0 && time.Since(h.modTime) > fenceRetention):
		return nil
	case isLost:
		return notAcquiredError{fmt.Errorf("--handle %s: cannot be replaced: this database does not know the lease on %q (fence %d), which may be held in another schema or under another prefix; remove the file if that lease is over", words.QuoteIfNeeded(h.path), name, fence)}
	case errors.Is(err, pawl.ErrInvalid):
		return fmt.Errorf("--handle %s: cannot be replaced: %w", words.QuoteIfNeeded(h.path), foreignHandle(err))
	case err != nil:
		return err
	}
	if err := detach(ctx, lease); err != nil {
		return err
	}
	return h.stillHeld(lease.Name(), lease.Fence())
}

func (h *handleFile) stillHeld(name string, fence uint64) error {
	return notAcquiredError{fmt.Errorf("--handle %s: the file has the handle of %q (fence %d), which is still held; release it first", words.QuoteIfNeeded(h.path), name, fence)}
}

// fenceRetention is the time for which every backend keeps the last fence of a name by
// default.
const fenceRetention = 24 * time.Hour

// An acquireCommand is one `pawl acquire`: a job that leaves its lock held.
type acquireCommand struct {
	*job
	asJSON bool
	file   *handleFile // nil for standard output
}

func (a *acquireCommand) run() error {
	client, lease, err := a.claim()
	if err != nil {
		a.releaseAndClose(client, nil, a.closeTimeout())
		return err
	}
	defer a.releaseAndClose(client, nil, releaseTimeout)
	select {
	case s := <-a.signals:
		a.startEndTimeout()
		a.releaseUnused(lease)
		return stoppedBy(s)
	default:
	}
	return a.handOver(client, lease.(*pawl.Lease)) //nolint:forcetypeassert // acquire has one name
}

// handOver detaches the lease, and prints its handle.
func (a *acquireCommand) handOver(client *pawl.Client, lease *pawl.Lease) error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	handle, err := lease.Detach(ctx)
	if err != nil {
		a.releaseUnused(lease)
		return &exit{code: codeOf(err), err: err}
	}
	printErr := make(chan error, 1)
	go func() { printErr <- a.printHandle(lease, string(handle)) }() // standard output may have no reader
	select {
	case err := <-printErr:
		if err != nil {
			a.takeBack(client, handle)
			return &exit{code: exitOther, err: fmt.Errorf("cannot write the handle: %w", err)}
		}
		return nil
	case s := <-a.signals:
		a.startEndTimeout()
		a.takeBack(client, handle)
		return stoppedBy(s)
	}
}

// printHandle writes the handle to the file, or prints it.
func (a *acquireCommand) printHandle(lease *pawl.Lease, handle string) error {
	if a.file != nil {
		if err := a.file.write(handle); err != nil {
			return err
		}
		handle = ""
	} else if a.v.out == os.Stdout && term.IsTerminal(int(os.Stdout.Fd())) {
		a.v.warn("the handle is a secret: any program that has it can release the lock; --handle FILE keeps it off the screen")
	}
	switch {
	case a.asJSON:
		return printJSONLine(a.v.out, leaseJSON(lease, handle))
	case handle != "":
		_, err := fmt.Fprintln(a.v.out, handle)
		return err
	}
	return nil
}

// takeBack releases a lease whose handle was not written.
func (a *acquireCommand) takeBack(c *pawl.Client, handle pawl.Handle) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	lease, err := c.Attach(ctx, handle)
	if err != nil {
		a.v.warn("%s; the name stays held until its lease expires", words.ErrorText(err))
		return
	}
	a.releaseUnused(lease)
}

func leaseJSON(l *pawl.Lease, handle string) jsonLease {
	left := max(time.Until(l.Deadline()), 0)
	return jsonLease{Name: l.Name(), Fence: l.Fence(), Handle: handle, ExpiresInMS: left.Milliseconds()}
}
