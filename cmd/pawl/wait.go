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
	var maxWait time.Duration
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
			return usageError(cmd, driver.ValidateDelay("--wait", maxWait))
		}),
		ValidArgsFunction: completeName(loc),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := v.interruptible(cmd)
			defer stop()
			w := waitCommand{name: args[0], maxWait: maxWait, once: cmd.Flags().Changed("wait") && maxWait == 0}
			err := w.run(ctx, func(ctx context.Context, f func(*pawl.Client) error) error {
				return withClient(ctx, v, loc, cmd, f, doNothing)
			})
			if e, ok := errors.AsType[*exit](err); ok && quiet && errors.Is(err, errNotAcquired) {
				e.err = nil
			}
			return err
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().VarP((*seconds)(&maxWait), "wait", "w", "give up after this long, connecting included; 0 means to look once (default: wait forever, while the database answers)")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing if NAME is not free")
	return cmd
}

type waitCommand struct {
	name    string
	maxWait time.Duration // 0 means no limit
	once    bool          // --wait 0
}

// run waits until the name is free. open calls its argument with a client.
func (w *waitCommand) run(ctx context.Context, open func(context.Context, func(*pawl.Client) error) error) error {
	waitCtx, cancel := context.WithCancel(ctx)
	switch {
	case w.once:
		waitCtx, cancel = context.WithTimeout(ctx, tryTimeout)
	case w.maxWait > 0:
		waitCtx, cancel = context.WithTimeout(ctx, w.maxWait)
	}
	defer cancel()
	err := open(waitCtx, func(c *pawl.Client) error {
		if w.once {
			return w.inspect(waitCtx, c)
		}
		err := c.WaitUntilFree(waitCtx, w.name)
		if deadlinePassed(waitCtx) && errors.Is(err, context.DeadlineExceeded) {
			return w.inspect(ctx, c)
		}
		return err
	})
	if deadlinePassed(waitCtx) && errors.Is(err, context.DeadlineExceeded) {
		return w.noAnswerError()
	}
	return orSignal(ctx, err)
}

// inspect reads the name once: for --wait 0, and when --wait has passed. Then the last
// event of the watch may be old, because the database may have failed since.
func (w *waitCommand) inspect(ctx context.Context, c *pawl.Client) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	e, err := c.Inspect(ctx, w.name)
	switch {
	case errors.Is(err, context.Canceled), w.once && err != nil:
		return err
	case err != nil:
		return w.noAnswerError()
	case isFree(&e):
		return nil
	case w.once:
		return &exit{code: exitHeld, err: notAcquiredError{errors.New(heldText(&e))}}
	}
	return &exit{code: exitHeld, err: notAcquiredError{fmt.Errorf("gave up after %v: %s", w.maxWait, heldText(&e))}}
}

func isFree(e *pawl.Entry) bool {
	return len(e.Holders) == 0 && len(e.Waiters) == 0 && e.ClosedFor == 0
}

func heldText(e *pawl.Entry) string {
	held := &pawl.HeldError{Name: e.Name, Holders: len(e.Holders), ClosedFor: e.ClosedFor}
	if held.Holders > 0 {
		held.Holder = e.Holders[0]
	}
	return words.ErrorText(held)
}

func (w *waitCommand) noAnswerError() error {
	maxWait := cmp.Or(w.maxWait, tryTimeout) // tryTimeout with --wait 0
	return &exit{code: exitUnavailable, err: fmt.Errorf("gave up on %q after %v: the database did not answer; try pawl doctor", w.name, maxWait)}
}
