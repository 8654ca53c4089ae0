package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/driver"
)

func newWait(v *output, loc *location) *cobra.Command {
	var patience seconds
	var quiet bool
	cmd := &cobra.Command{
		Use:   "wait [flags] NAME",
		Short: "Wait until a lock is free",
		Long: `Wait ends when NAME is free: it has no holder and no waiter, and it is not
closed. It takes no lock and no place in the queue, so NAME may be held again a
moment later. To keep NAME while a command runs, use pawl run.

The exit code is 0, or:
   64  wrong usage; nothing was done
   69  the database is unavailable or too slow
   75  NAME was not free within --wait`,
		Example: `  # Start when the migration is over.
  pawl wait migration && ./server
  # Is it free now?
  pawl wait -q -w 0 nightly && echo free`,
		Args: cobra.MatchAll(oneName, func(cmd *cobra.Command, _ []string) error {
			return usage(cmd, driver.ValidateDelay("--wait", time.Duration(patience)))
		}),
		ValidArgsFunction: completeName(loc),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := v.interruptible(cmd)
			defer stop()
			w := waitCommand{name: args[0], patience: time.Duration(patience), once: cmd.Flags().Changed("wait") && patience == 0}
			err := w.on(ctx, func(ctx context.Context, f func(*pawl.Client) error) error {
				return withClient(ctx, v, loc, cmd, f, nothing)
			})
			if e, ok := errors.AsType[*exit](err); ok && quiet && errors.Is(err, errNotAcquired) {
				e.err = nil
			}
			return err
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().VarP(&patience, "wait", "w", "give up after this long, connecting included; 0 means to look once (default: wait forever, while the database answers)")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing if NAME is not free")
	return cmd
}

type waitCommand struct {
	name     string
	patience time.Duration // 0 is no limit
	once     bool
}

// on waits, with the client that open passes to its function.
func (w *waitCommand) on(ctx context.Context, open func(context.Context, func(*pawl.Client) error) error) error {
	bound, cancel := context.WithCancel(ctx)
	switch {
	case w.once:
		bound, cancel = context.WithTimeout(ctx, tryTimeout)
	case w.patience > 0:
		bound, cancel = context.WithTimeout(ctx, w.patience)
	}
	defer cancel()
	err := open(bound, func(c *pawl.Client) error {
		if w.once {
			return w.inspect(bound, c)
		}
		err := c.WaitUntilFree(bound, w.name)
		if isOver(bound) && errors.Is(err, context.DeadlineExceeded) {
			return w.inspect(ctx, c)
		}
		return err
	})
	if isOver(bound) && errors.Is(err, context.DeadlineExceeded) {
		return w.unanswered()
	}
	return orSignal(ctx, err)
}

// inspect ends a wait with --wait 0, or one whose --wait has passed. The latter inspects
// the name once more, because the last event of the watch may be old: the database may
// have failed since.
func (w *waitCommand) inspect(ctx context.Context, c *pawl.Client) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	e, err := c.Inspect(ctx, w.name)
	switch {
	case errors.Is(err, context.Canceled), w.once && err != nil:
		return err
	case err != nil:
		return w.unanswered()
	case isFree(&e):
		return nil
	case w.once:
		return &exit{code: exitHeld, err: notAcquiredError{errors.New(inTheWay(&e))}}
	}
	return &exit{code: exitHeld, err: notAcquiredError{fmt.Errorf("gave up after %v: %s", w.patience, inTheWay(&e))}}
}

func isFree(e *pawl.Entry) bool {
	return len(e.Holders) == 0 && len(e.Waiters) == 0 && e.ClosedFor == 0
}

func inTheWay(e *pawl.Entry) string {
	held := &pawl.HeldError{Name: e.Name, Holders: len(e.Holders), ClosedFor: e.ClosedFor}
	if held.Holders > 0 {
		held.Holder = e.Holders[0]
	}
	return words.Bare(held)
}

func (w *waitCommand) unanswered() error {
	patience := cmp.Or(w.patience, tryTimeout) // tryTimeout with --wait 0
	return &exit{code: exitUnavailable, err: fmt.Errorf("gave up on %q after %v: the database did not answer; try pawl doctor", w.name, patience)}
}
