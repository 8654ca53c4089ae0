package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

func newWait(v *voice, where *location) *cobra.Command {
	var patience seconds
	var quiet bool
	cmd := &cobra.Command{
		Use:   "wait [flags] NAME",
		Short: "Wait until a lock is free",
		Long: `Wait ends when NAME is free: nobody holds it or waits for it, and it is not
closed. It takes no lock and no place in the queue, so NAME may be held again a
moment later. To do something while nobody else does, use pawl run.

The exit code is 0, or:
   64  wrong usage; nothing was done
   69  the database is unavailable or too slow
   75  NAME was not free within --wait`,
		Example: `  # Start when the migration is over.
  pawl wait migration && ./server
  # Is it free now?
  pawl wait -q -w 0 nightly && echo free`,
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := oneName(cmd, args); err != nil {
				return err
			}
			if err := driver.ValidateDelay("--wait", time.Duration(patience)); err != nil {
				return usage(cmd, err)
			}
			return nil
		},
		ValidArgsFunction: completeName(where),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd)
			defer stop()
			w := freeing{name: args[0], patience: time.Duration(patience), once: cmd.Flags().Changed("wait") && patience == 0}
			err := w.run(ctx, v, where, cmd)
			if e, ok := errors.AsType[*exit](err); ok && quiet && errors.Is(err, errNotAcquired) {
				e.err = nil
			}
			return err
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().VarP(&patience, "wait", "w", "give up after this long, connecting included; 0 means to look once (default: wait forever, while the database answers)")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing if NAME is not free")
	noFiles(cmd, "wait")
	return cmd
}

// A freeing is one `pawl wait`.
type freeing struct {
	name     string
	patience time.Duration // 0 is for ever
	once     bool

	last *pawl.Entry // nil until the backend has answered
}

func (w *freeing) run(ctx context.Context, v *voice, where *location, cmd *cobra.Command) error {
	bound, cancel := context.WithCancel(ctx)
	switch {
	case w.once:
		bound, cancel = context.WithTimeout(ctx, tryPatience)
	case w.patience > 0:
		bound, cancel = context.WithTimeout(ctx, w.patience)
	}
	defer cancel()
	err := withClient(bound, v, where, cmd, func(c *pawl.Client) error { return w.watch(bound, c) }, nothing)
	if isOver(bound) && errors.Is(err, context.DeadlineExceeded) {
		return w.gaveUp()
	}
	return err
}

// watch returns when the name is free.
func (w *freeing) watch(ctx context.Context, c *pawl.Client) error {
	for e, err := range c.Watch(ctx, w.name) {
		if err != nil {
			return err
		}
		w.last = &e
		switch {
		case isFree(&e):
			return nil
		case w.once:
			return &exit{code: exitHeld, err: notAcquiredError{errors.New(w.inTheWay())}}
		}
	}
	return ctx.Err()
}

func isFree(e *pawl.Entry) bool {
	return len(e.Holders) == 0 && len(e.Waiters) == 0 && e.ClosedFor == 0
}

// inTheWay says why the name is not free.
func (w *freeing) inTheWay() string {
	held := &pawl.HeldError{Name: w.name, Holders: len(w.last.Holders), ClosedFor: w.last.ClosedFor}
	if held.Holders > 0 {
		held.Holder = w.last.Holders[0]
	}
	return bare(held)
}

func (w *freeing) gaveUp() error {
	patience := w.patience
	if w.once {
		patience = tryPatience
	}
	if w.last == nil {
		return &exit{code: exitUnavailable, err: fmt.Errorf("gave up on %q after %v: the database did not answer; try pawl doctor", w.name, patience)}
	}
	return &exit{code: exitHeld, err: notAcquiredError{fmt.Errorf("gave up after %v: %s", patience, w.inTheWay())}}
}
