package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/trust"
	"github.com/pawl-go/pawl/internal/visible"
)

type breakCommand struct {
	v      *output
	client *pawl.Client
	name   string
	delay  time.Duration // of pawl.BreakOptions
	by     string
	reason string
	asJSON bool
}

// breakLease breaks the lease of a holder, with the name of the person and the reason,
// and prints the receipt.
func (b *breakCommand) breakLease(ctx context.Context, e pawl.Entry, h pawl.Holder) error {
	o := &pawl.BreakOptions{Delay: b.delay, By: b.by, Reason: b.reason}
	if o.Delay == 0 {
		o.Delay = trust.BreakDelay(e.Holders, h.Fence) // for the receipt; if it is 0, Break chooses the delay
	}
	if err := b.client.Break(ctx, b.name, h.Fence, o); err != nil {
		return err
	}
	return b.printReceipt(h, max(0, o.Delay))
}

// defaultBy returns user@host. It leaves out the ID of this process, which ends at once.
func defaultBy() string {
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name[:min(len(name), driver.MaxLabelSize)]
}

func newBreak(v *output, loc *location) *cobra.Command {
	var fence uint64
	var yes bool
	b := breakCommand{v: v}
	cmd := &cobra.Command{
		Use:   "break [flags] NAME",
		Short: "Take a lock away from its holder",
		Long: `Break ends the lease of the holder of NAME. The holder is notified, with --by
and --reason, and NAME stays closed for --delay so that it has time to stop:
pawl run stops its command within that time. By default that is the TTL of the
lease, as show prints it: within it, a holder that cannot be reached gives up.
With --delay 0 the next holder may begin before the old one has stopped.

The fence chooses the lease to break, so that break never ends the lease of a
later holder. Without --fence, break shows who holds NAME and, on a terminal,
asks for the fence. With --yes it breaks every current holder.

Pawl cannot notify a holder that is paused. Only a check of the fence refuses
what that holder writes later.

With --json it prints one line for each broken lease, an object with name,
fence, owner, closed_for_ms, by and reason.

The exit code is 0 if the lease was broken, 64 if neither --fence nor --yes is
given and there is no terminal to ask, or the answer is no fence, 69 if the
database is unavailable, and 75 if no holder has that fence (any more).`,
		Example: `  # Show who holds it, and ask.
  pawl break nightly
  # Break that lease, and no other.
  pawl break --fence 1763626152000001 nightly
  # Tell the holder why.
  pawl break --yes --reason 'the host is being replaced' nightly
  # Break every current holder, with half a minute to stop.
  pawl break --yes --delay 30s nightly`,
		Args: cobra.MatchAll(oneName, func(cmd *cobra.Command, _ []string) error {
			switch hasFence := cmd.Flags().Changed("fence"); {
			case yes && hasFence:
				return usageError(cmd, errors.New("--fence and --yes are mutually exclusive"))
			case b.asJSON && !yes && !hasFence:
				return usageError(cmd, errors.New("--json requires --fence or --yes"))
			}
			if b.by == "" {
				b.by = defaultBy()
			}
			if err := validateLabels(labels{"by": b.by, "reason": b.reason}); err != nil {
				return usageError(cmd, err)
			}
			return usageError(cmd, checkBreakDelay(b.delay))
		}),
		ValidArgsFunction: completeName(loc),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := v.interruptible(cmd)
			defer stop()
			return withClient(ctx, v, loc, cmd, func(c *pawl.Client) error {
				b.client, b.name = c, args[0]
				switch {
				case cmd.Flags().Changed("fence"):
					return b.breakFence(ctx, fence)
				case yes:
					return b.breakAll(ctx)
				default:
					return b.askFence(ctx, cmd)
				}
			}, func() error { return noHolderError(args[0]) })
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().Var((*fenceFlag)(&fence), "fence", "the `FENCE` of the lease to break")
	cmd.Flags().BoolVar(&yes, "yes", false, "break every current holder")
	cmd.Flags().Var((*breakDelay)(&b.delay), "delay", "keep NAME closed for this long, so that the holder can stop (default the TTL of the lease)")
	cmd.Flags().StringVar(&b.by, "by", "", "tell the holder that `WHO` broke it (default user@host)")
	cmd.Flags().StringVar(&b.reason, "reason", "", "tell the holder why")
	cmd.Flags().BoolVar(&b.asJSON, "json", false, "print a line of JSON for each broken lease")
	must(cmd.RegisterFlagCompletionFunc("fence", completeFence(loc)))
	return cmd
}

func (b *breakCommand) breakFence(ctx context.Context, fence uint64) error {
	e, err := b.client.Inspect(ctx, b.name) // for the receipt; the entry may change before the break
	if err != nil {
		return err
	}
	holder := pawl.Holder{Fence: fence}
	if i := slices.IndexFunc(e.Holders, func(h pawl.Holder) bool { return h.Fence == fence }); i >= 0 {
		holder = e.Holders[i]
	}
	err = b.breakLease(ctx, e, holder)
	if errors.Is(err, pawl.ErrNoSuchLease) {
		return b.wrongFenceError(ctx, fence)
	}
	return err
}

// breakAll breaks the leases of all current holders. Unless --delay is 0, the first break
// closes the name, so no other claim is granted meanwhile.
func (b *breakCommand) breakAll(ctx context.Context) error {
	e, err := b.client.Inspect(ctx, b.name)
	if err != nil {
		return err
	}
	err = noHolderError(b.name)
	for _, h := range e.Holders {
		breakErr := b.breakLease(ctx, e, h)
		if errors.Is(breakErr, pawl.ErrNoSuchLease) {
			continue // the holder has released meanwhile
		}
		if err = breakErr; err != nil {
			break
		}
	}
	return err
}

func noHolderError(name string) error {
	return &exit{code: exitHeld, err: fmt.Errorf("nobody holds %q", name)}
}

// askFence shows the holders of the name, and asks for the fence.
func (b *breakCommand) askFence(ctx context.Context, cmd *cobra.Command) error {
	e, err := b.client.Inspect(ctx, b.name)
	if err != nil {
		return err
	}
	if len(e.Holders) == 0 {
		return noHolderError(b.name)
	}
	if err := printEntry(b.v.out, e, time.Now()); err != nil {
		return err
	}
	missing := fmt.Errorf("missing --fence; use --fence %d, or --yes to break every current holder", e.Holders[0].Fence)
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return usageError(cmd, missing)
	}
	fmt.Fprint(b.v.err, "pawl: type the fence of the lease to break: ")
	line, _ := untilDone(ctx, func() (string, error) { return bufio.NewReader(os.Stdin).ReadString('\n') })
	if ctx.Err() != nil {
		fmt.Fprintln(b.v.err) // ends the line of the question
		return ctx.Err()
	}
	fence, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return usageError(cmd, errors.New("not a fence; nothing was broken"))
	}
	return b.breakFence(ctx, fence)
}

func (b *breakCommand) printReceipt(h pawl.Holder, closed time.Duration) error {
	if b.asJSON {
		return printJSONLine(b.v.out, jsonBroken{Name: b.name, Fence: h.Fence, Owner: ownerJSON(h.Owner), ClosedForMS: closed.Milliseconds(), By: b.by, Reason: b.reason})
	}
	until := ""
	if closed > 0 {
		until = fmt.Sprintf("; closed for %v", closed)
	}
	_, err := fmt.Fprintf(b.v.out, "broke %s, held by %s (fence %d)%s\n", words.QuoteIfNeeded(b.name), visible.Text(h.Owner.String()), h.Fence, until)
	return err
}

// wrongFenceError returns the error for a fence that no holder has, and shows a holder.
func (b *breakCommand) wrongFenceError(ctx context.Context, fence uint64) error {
	holders := "nobody holds it"
	if e, err := b.client.Inspect(ctx, b.name); err == nil && len(e.Holders) > 0 {
		h := e.Holders[0]
		holders = fmt.Sprintf("%v holds it, with fence %d", h.Owner, h.Fence)
		if n := len(e.Holders) - 1; n > 0 {
			holders += fmt.Sprintf(", and %d more", n)
		}
	}
	return &exit{code: exitHeld, err: fmt.Errorf("nothing was broken: no holder of %q has the fence %d; %s", b.name, fence, holders)}
}
