package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/visible"
)

func newWatch(v *output, loc *location) *cobra.Command {
	w := &watchCommand{v: v}
	cmd := &cobra.Command{
		Use:   "watch [flags] NAME",
		Short: "Print a line each time that a lock changes",
		Long: `Watch prints who holds NAME and how many wait, at once and each time that it
changes, until a signal ends it, or no process reads its output any more. A
renewal is no change. If changes follow each other quickly, watch may omit some,
but never the last. When the database fails, watch says so, and says when it
answers again.

With --json each line is an object, like that of pawl show --json. It has more
fields than the line for people has, so more of them can change.

The exit code is 128 + n after signal n, or 69 if the database was unavailable
when watch started.`,
		Example: `  pawl watch deploy
  pawl watch --json deploy | jq -r '.holders[0].owner.host // "free"'`,
		Args:              oneName,
		ValidArgsFunction: completeName(loc),
		RunE: func(cmd *cobra.Command, args []string) error {
			toStdout := v.out == os.Stdout
			ctx, stop := v.interruptible(cmd)
			defer stop()
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			if toStdout {
				go func() {
					if awaitNoReader() {
						cancel(errNoReader)
					}
				}()
			}
			err := withClient(ctx, v, loc, cmd, func(c *pawl.Client) error {
				return w.run(ctx, c, args[0])
			}, func() error { return w.runWhenCreated(ctx, loc, cmd, args[0]) })
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&w.asJSON, "json", false, "print a line of JSON for each change")
	return cmd
}

type watchCommand struct {
	v      *output
	asJSON bool
	last   string // the last printed state, without the parts that change with time alone
	failed bool   // the database has failed since then
}

// watchPause is the time after which watch tries a failed database or a missing file
// again.
const watchPause = time.Second

// runWhenCreated watches the default file once it exists.
func (w *watchCommand) runWhenCreated(ctx context.Context, loc *location, cmd *cobra.Command, name string) error {
	if err := w.printIfChanged(pawl.Entry{Name: name}); err != nil {
		return err
	}
	for {
		if backoff.Wait(ctx, watchPause) != nil {
			return nil
		}
		c, err := loc.openClient(ctx, cmd)
		if _, noFile := errors.AsType[*noDefaultFileError](err); noFile {
			continue
		}
		if err != nil {
			return err
		}
		defer closeSoon(c) //nolint:errcheck // it holds nothing
		return w.run(ctx, c, name)
	}
}

func (w *watchCommand) run(ctx context.Context, c *pawl.Client, name string) error {
	for {
		for e, err := range c.Watch(ctx, name) {
			switch {
			case ctx.Err() != nil:
				return nil
			case errors.Is(err, pawl.ErrInvalid):
				return err
			case err != nil:
				w.v.sayError(err)
				w.failed = true
			default:
				if w.failed {
					w.v.sayAnswersAgain()
					w.failed = false
				}
				if err := w.printIfChanged(e); err != nil {
					return err
				}
			}
		}
		if backoff.Wait(ctx, watchPause) != nil {
			return nil
		}
	}
}

func (v *output) sayAnswersAgain() { v.say("the database answers again") }

// printIfChanged prints an entry, unless it is equal to the last one, for example after
// the watch has begun again.
func (w *watchCommand) printIfChanged(e pawl.Entry) error {
	line := watchLine(&e)
	state := line
	if w.asJSON { // JSON has more fields than the line
		text, err := json.Marshal(entryJSON(&e).withoutCountdowns())
		if err != nil {
			return err
		}
		state = string(text)
	}
	if state == w.last {
		return nil
	}
	w.last = state
	if w.asJSON {
		return printEntryJSON(w.v.out, e)
	}
	_, err := fmt.Fprintf(w.v.out, "%s  %s\n", time.Now().Format(time.DateTime), line)
	return err
}

// watchLine returns an entry as a line, without the parts that change with time alone.
func watchLine(e *pawl.Entry) string {
	state := "free"
	switch {
	case len(e.Holders) > 0:
		var holders []string
		for _, h := range e.Holders {
			holders = append(holders, fmt.Sprintf("%s (fence %d)", words.Holder(h), h.Fence))
		}
		state = "held by " + strings.Join(holders, ", ")
		if e.ClosedFor > 0 {
			state += ", and closed after a holder was broken or expired"
		}
	case e.ClosedFor > 0:
		state = "closed after a holder was broken or expired"
	case !isKnown(e):
		state = "never locked here, or forgotten"
	}
	if n := len(e.Waiters); n > 0 {
		state += fmt.Sprintf("; %d waiting", n)
	}
	if e.Value != nil {
		state += fmt.Sprintf("; value %q", e.Value)
	}
	return words.QuoteIfNeeded(e.Name) + "  " + visible.Text(state)
}

// isKnown reports whether the backend has an entry of a name. It deletes an unused name,
// by default after a day.
func isKnown(e *pawl.Entry) bool {
	return e.Fence > 0 || len(e.Holders) > 0 || len(e.Waiters) > 0 || e.ClosedFor > 0 || e.Value != nil
}
