package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

type runFlags struct {
	jobFlags
	also []string
}

func newRun(v *output, loc *location) *cobra.Command {
	f := &runFlags{jobFlags: newJobFlags()}
	cmd := &cobra.Command{
		Use:   "run [flags] NAME [--] COMMAND [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Run waits for the lock NAME, first come, first served, and runs COMMAND while
holding it. Flags go before NAME; everything after NAME belongs to COMMAND.

COMMAND gets two variables. PAWL_NAME is the name of the lock. PAWL_FENCE is its
fencing token, a number greater than that of every earlier holder: send it along
with what COMMAND writes, and let the receiver refuse a smaller one. With -s or
--limit, do not refuse smaller ones: several holders work at the same time.

With --also, run takes several locks together, all of them or none, each with
the same flags. Then PAWL_FENCES has a line for each: fence, space, name.
` + systemHelp + `
` + flockHelp + `

` + exitCodes,
		Example: `  # Wait for the lock, then run.
  pawl run nightly -- ./report.sh
  # Exit with code 75 at once if another holds it.
  pawl run -n nightly -- ./report.sh
  # The same, but silent and with code 0: skip what another does.
  pawl run --skip nightly -- ./report.sh
  # Wait for 90 seconds at most; -w 1m30s is the same.
  pawl run -w 90 nightly -- ./report.sh
  # Run a shell line.
  pawl run -c 'date >> log; ./report' nightly
  # Share the lock with other readers, but not with a writer.
  pawl run -s catalog -- ./read.sh
  # Take 2 of 4 permits.
  pawl run --limit 4 -k 2 gpu -- ./train.py
  # Take two locks.
  pawl run --also stock orders -- ./move.sh
  # Stop it when it takes more than an hour, or when its health check fails.
  pawl run --max-hold 1h --health 'curl -fsS localhost:80' web -- ./serve
  # For cron: no second run within 50 s of the first, on any machine. For a run
  # once per minute, hour or day see pawl once.
  pawl run --skip --min-hold 50s cron:7 -- ./tick.sh
  # Print whom it waits for, and show a label to others.
  pawl run -v --label job=42 nightly -- true`,
		Args:              f.check,
		ValidArgsFunction: completeRun(loc),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(v, loc, cmd, args) },
	}
	f.claimFlags.addFlags(cmd, "how long the lock stays held if pawl is killed", "keep the lock for at least this long, even if COMMAND ends sooner")
	f.addSkip(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.also, "also", nil, "take the lock of this `NAME`, too; repeatable")
	flags.Var((*seconds)(&f.maxHold), "max-hold", "stop COMMAND when it has run for this long")
	must(cmd.RegisterFlagCompletionFunc("also", completeName(loc)))
	f.commandFlags.addFlags(cmd)
	return cmd
}

func (f *runFlags) check(cmd *cobra.Command, args []string) error {
	if err := f.jobFlags.check(cmd, args); err != nil {
		return err
	}
	for i, name := range f.also {
		if name == args[0] || slices.Contains(f.also[:i], name) {
			return usageError(cmd, fmt.Errorf("the name %q is given twice", name))
		}
		if err := driver.ValidateName(name); err != nil {
			return usageError(cmd, err)
		}
	}
	return nil
}

func (f *runFlags) run(v *output, loc *location, cmd *cobra.Command, args []string) error {
	j, options, err := f.prepareJob(v, loc, cmd, args)
	if err != nil {
		return err
	}
	j.others = f.also
	first := f.withHealth(options, j)
	j.acquire = f.acquireFunc(j.name, first)
	if len(f.also) > 0 {
		j.acquire = func(ctx context.Context, c *pawl.Client) (jobLease, error) {
			locks := []pawl.Lockable{f.lock(c, j.name, first)}
			for _, name := range f.also {
				locks = append(locks, f.lock(c, name, options))
			}
			if f.noWait {
				return pawl.All(locks...).TryLock(ctx)
			}
			return pawl.All(locks...).Lock(ctx)
		}
	}
	return f.conflictError(j.run())
}
