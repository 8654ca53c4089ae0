package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/screen"
	"github.com/pawl-go/pawl/cmd/pawl/top"
	"github.com/pawl-go/pawl/driver"
)

func newTop(v *voice, where *location) *cobra.Command {
	interval, delay, count := seconds(time.Second), seconds(5*time.Second), number(0)
	cmd := &cobra.Command{
		Use:   "top [flags] [PREFIX]",
		Short: "Watch locks on the terminal, and break one",
		Long: `Top shows the names that are held, closed or waited for, live: who holds them,
for how long, how much time is left, and who waits. What was not renewed in time
comes first, then who has been waiting longest. With PREFIX it shows only the
names that begin with it.

The keys are in its last line, and ? explains them: / filters, s sorts, enter
shows one name with its queue and who blocks whom, b breaks a lease, q ends it.
Before it breaks a lease it asks for the name, and it breaks only the lease that
it has shown. It says so when the database does not answer, and goes on by
itself when it does.

If standard output is no terminal, or with -n or --interval, it prints what
pawl ls prints, again and again, under the time of day.

The exit code is 0; 69 if the database was unavailable when it started, or when
it printed the last list.`,
		Example: `  pawl top
  pawl top report:
  pawl top -n 60 --interval 1m >> locks.log`,
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			switch d := time.Duration(interval); {
			case len(args) > 1:
				return usage(cmd, errors.New("too many arguments; want one PREFIX"))
			case cmd.Flags().Changed("count") && count < 1:
				return usage(cmd, fmt.Errorf("-n is %d; allowed: at least 1", count))
			case d < 100*time.Millisecond || d > 24*time.Hour:
				return usage(cmd, fmt.Errorf("--interval is %v; allowed: 100ms to 24h", d))
			}
			if err := driver.ValidateDelay("--delay", time.Duration(delay)); err != nil {
				return usage(cmd, err)
			}
			return nil
		},
		ValidArgsFunction: completeName(where),
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := ""
			if len(args) == 1 {
				prefix = args[0]
			}
			prints := cmd.Flags().Changed("count") || cmd.Flags().Changed("interval")
			if prints || v.out != os.Stdout || !screen.Drawable(os.Stdin, os.Stdout) {
				return printTop(v, where, cmd, prefix, repeat{every: time.Duration(interval), count: int(count)})
			}
			return liveTop(where, cmd, prefix, time.Duration(delay))
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().Var(&delay, "delay", "keep a name whose lease is broken closed for this long")
	cmd.Flags().VarP(&count, "count", "n", "print `COUNT` lists, and end")
	cmd.Flags().Var(&interval, "interval", "print a list that often")
	noFiles(cmd, "delay", "count", "interval")
	return cmd
}

// printTop is `pawl top` without a terminal.
func printTop(v *voice, where *location, cmd *cobra.Command, prefix string, r repeat) error {
	ctx, stop := interruptible(cmd)
	defer stop()
	return withClient(ctx, v, where, cmd, func(c *pawl.Client) error {
		return watchList(ctx, v, r, func() (listing, error) { return list(ctx, c, prefix) })
	}, func() error {
		later := &later{where: where, cmd: cmd}
		defer later.close()
		return watchList(ctx, v, r, func() (listing, error) { return later.list(ctx, prefix) })
	})
}

// liveTop is `pawl top` on a terminal. What cannot be opened is said before the terminal
// is taken; where nothing was ever locked, it waits until something is.
func liveTop(where *location, cmd *cobra.Command, prefix string, delay time.Duration) error {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, stop := screen.Ended(ctx)
	defer stop()
	open := func(ctx context.Context) (*pawl.Client, error) { return where.open(ctx, cmd) }
	o := top.Options{Open: open, Close: closeSoon, Prefix: prefix, Delay: delay}
	c, err := open(ctx)
	unused, none := errors.AsType[*unusedError](err)
	switch {
	case ctx.Err() != nil:
		return nil
	case none:
		o.Idle = unused.Error() + " yet"
	case err != nil:
		return err
	}
	s, err := screen.Open(os.Stdin, os.Stdout)
	if err != nil {
		return err
	}
	defer s.CloseOnPanic()
	if top.Run(ctx, s, c, o) != nil || s.Close() != nil {
		return &exit{code: exitOther} // the terminal takes nothing, nor would it take a word
	}
	return nil
}
