package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/screen"
	"github.com/pawl-go/pawl/cmd/pawl/top"
)

func newTop(v *output, loc *location) *cobra.Command {
	var delay time.Duration
	var allowBreak bool
	cmd := &cobra.Command{
		Use:   "top [flags] [PREFIX]",
		Short: "Watch locks on the terminal",
		Long: `Top shows the names that are held, closed or waited for, live: who holds them,
for how long, how much time is left, and who waits. Leases that were not renewed
in time come first, then the names with the longest waits. With PREFIX it shows
only the names that begin with it.

The keys are in its last line, and ? explains them: / filters, s sorts, enter
shows one name with its queue and who blocks whom, q ends it. When the database
does not answer, top says so, and goes on by itself when it answers again.

With --allow-break, b breaks a lease. Top then asks for the name, and breaks
only the lease that it has shown.

Without a terminal, use pawl ls, or pawl watch for one name.

The exit code is 0; 64 without a terminal; 69 if the database was unavailable
when it started; 128 + n after signal n.`,
		Example: `  pawl top
  pawl top report:
  pawl top --allow-break`,
		Args:              cobra.MatchAll(optionalPrefix, func(cmd *cobra.Command, _ []string) error { return usageError(cmd, checkBreakDelay(delay)) }),
		ValidArgsFunction: completeName(loc),
		RunE: func(cmd *cobra.Command, args []string) error {
			if v.out != os.Stdout || !screen.Drawable() {
				return usageError(cmd, errors.New("this is no terminal that can be drawn on; use pawl ls, or pawl watch for one name"))
			}
			return runTop(loc, cmd, top.Options{Prefix: strings.Join(args, ""), AllowBreak: allowBreak, By: defaultBy(), Delay: delay})
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&allowBreak, "allow-break", false, "let leases be broken with the key b")
	cmd.Flags().Var((*breakDelay)(&delay), "delay", "how long a name stays closed after its lease is broken (default the TTL of the lease)")
	return cmd
}

// runTop runs `pawl top` on a terminal. If the backend cannot be opened, it returns the
// error without taking over the terminal. It waits for a default file that is missing.
func runTop(loc *location, cmd *cobra.Command, o top.Options) error {
	ctx, stop := untilSignal(cmd, stoppedBy, screen.EndSignals...)
	defer stop()
	open := func(ctx context.Context) (*pawl.Client, error) { return loc.openClient(ctx, cmd) }
	o.Open, o.Close = open, closeSoon
	c, err := open(ctx)
	noFile, isNoFile := errors.AsType[*noDefaultFileError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case isNoFile:
		o.NoClientText = noFile.Error() + " yet"
	case err != nil:
		return err
	}
	s, err := screen.Open(stopFunc())
	if err != nil {
		return err
	}
	defer s.CloseOnPanic()
	if top.Run(ctx, s, c, o) != nil || s.Close() != nil {
		return &exit{code: exitOther} // no message, because the terminal has failed
	}
	return context.Cause(ctx)
}
