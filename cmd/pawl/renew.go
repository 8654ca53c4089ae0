package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
)

func newRenew(v *output, loc *location) *cobra.Command {
	h := &handleSource{v: v}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "renew [flags] [< HANDLE]",
		Short: "Renew a lock that pawl acquire has taken",
		Long: `Renew reads the handle that pawl acquire printed, from standard input or from
--handle FILE, and renews its lease for the --ttl that acquire was given. Renew
at a third of that time. If renew fails, stop the work that needs the lock.

With --json it prints one object: name, fence, and expires_in_ms: for how long
it can be relied on. Otherwise it prints nothing.

` + handleCodes,
		Example: `  pawl renew --handle lock
  # For as long as a job runs.
  while sleep 200; do pawl renew --handle lock || break; done`,
		Args: h.refuseArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withLease(v, loc, cmd, h, func(ctx context.Context, l *pawl.Lease) error {
				if err := detach(ctx, l); err != nil || !asJSON {
					return err
				}
				return printJSONLine(v.out, leaseJSON(l, ""))
			})
		},
	}
	h.addFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object of JSON")
	return cmd
}

func newRelease(v *output, loc *location) *cobra.Command {
	h := &handleSource{v: v}
	cmd := &cobra.Command{
		Use:   "release [flags] [< HANDLE]",
		Short: "Release a lock that pawl acquire has taken",
		Long: `Release reads the handle that pawl acquire printed, from standard input or from
--handle FILE, and releases its lease. The next in the queue then gets the lock,
or gets it when the --min-hold of acquire is over. Release prints nothing.

If the lease had ended before, others may have had the lock in the meantime:
release prints that, and fails.

` + handleCodes,
		Example: `  pawl release --handle lock
  printf %s "$handle" | pawl release`,
		Args: h.refuseArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withLease(v, loc, cmd, h, func(ctx context.Context, l *pawl.Lease) error {
				return l.Release(ctx)
			})
		},
	}
	h.addFlags(cmd)
	return cmd
}

func withLease(v *output, loc *location, cmd *cobra.Command, h *handleSource, f func(context.Context, *pawl.Lease) error) error {
	ctx, stop := v.interruptible(cmd)
	defer stop()
	if _, _, err := loc.findURL(cmd); err != nil { // before reading the handle
		return err
	}
	handle, err := h.read(ctx, cmd)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	err = withClient(ctx, v, loc, cmd, func(c *pawl.Client) error {
		lease, err := c.Attach(ctx, pawl.Handle(handle))
		if err != nil {
			return err
		}
		return f(ctx, lease)
	}, func() error {
		return &exit{code: exitNotHeld, err: errors.New("so the lease of this handle is not held")}
	})
	lost, isLost := errors.AsType[*pawl.LostError](err)
	switch {
	case isLost:
		return notHeldAnyMore(lost)
	case errors.Is(err, pawl.ErrInvalid):
		return usageError(cmd, foreignHandle(err))
	}
	return err
}

// foreignHandle rewrites the error for a handle that does not belong to this database.
func foreignHandle(err error) error {
	if bad, ok := errors.AsType[*pawl.InvalidError](err); ok && bad.Argument == "handle" {
		return foreignHandleError{bad}
	}
	return err
}

type foreignHandleError struct{ *pawl.InvalidError }

func (e foreignHandleError) Error() string {
	return "the handle " + e.Problem + "; want what pawl acquire printed for this database and namespace"
}

func (e foreignHandleError) Unwrap() error { return e.InvalidError }

// notHeldAnyMore returns the exit error for a lease that is over. After some time, the
// backend no longer knows why it ended.
func notHeldAnyMore(lost *pawl.LostError) error {
	why := "released, expired or broken"
	if lost.Reason != pawl.ReasonExpired {
		why = lost.Reason.String()
	}
	if by := lost.By.String(); lost.Reason == pawl.ReasonBroken && (lost.By.Client != "" || lost.By.Host != "") {
		why += " by " + by
	}
	if lost.Err != nil {
		why += "; " + words.ErrorText(lost.Err)
	}
	return &exit{code: exitNotHeld, err: fmt.Errorf("%q is not held any more by this handle (fence %d): %s", lost.Name, lost.Fence, why)}
}
