package main

import (
	"time"

	"github.com/spf13/cobra"
)

type runFlags struct {
	claimFlags
	commandFlags
}

func newRun(v *voice, where *location) *cobra.Command {
	f := &runFlags{claimFlags: newClaimFlags(30 * time.Second)}
	cmd := &cobra.Command{
		Use:   "run [flags] NAME [--] COMMAND [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Run waits for the lock NAME, first come, first served, and runs COMMAND while
holding it. Flags go before NAME; everything after NAME belongs to COMMAND.

COMMAND gets two variables. PAWL_NAME is the name of the lock. PAWL_FENCE is its
fencing token, a number greater than that of every earlier holder: send it along
with what COMMAND writes, and let the receiver refuse a smaller one. With -s and
--limit a smaller fence must not be refused: several work side by side.
` + systemHelp + `
` + flockHelp + `

` + exitCodes,
		Example: `  # Wait for the lock, then run.
  pawl run nightly -- ./report.sh
  # Exit with code 75 at once if another holds it.
  pawl run -n nightly -- ./report.sh
  # For cron: the same, but silent and with code 0.
  pawl run -n -q -E 0 nightly -- ./report.sh
  # Wait for 90 seconds at most; -w 1m30s is the same.
  pawl run -w 90 nightly -- ./report.sh
  # Run a shell line.
  pawl run -c 'date >> log; ./report' nightly
  # Share the lock with other readers, but not with a writer.
  pawl run -s catalog -- ./read.sh
  # Take 2 of 4 permits.
  pawl run --limit 4 -k 2 gpu -- ./train.py
  # Allow no second run within 50 s of the first, on any machine.
  pawl run --min-hold 50s cron:7 -- ./tick.sh
  # Print whom it waits for, and show a label to others.
  pawl run -v --label job=42 nightly -- true`,
		DisableFlagsInUseLine: true,
		Args:                  func(cmd *cobra.Command, args []string) error { return f.check(cmd, args) },
		ValidArgsFunction:     completeRun(where),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(v, where, cmd, args)
		},
	}
	f.claimFlags.add(cmd, "how long the lock stays held if pawl is killed", "keep the lock for at least this long, even if COMMAND ends sooner")
	f.commandFlags.add(cmd)
	return cmd
}

func (f *runFlags) check(cmd *cobra.Command, args []string) error {
	if err := f.commandFlags.check(cmd, args); err != nil {
		return err
	}
	if err := f.claimFlags.check(cmd, args[0]); err != nil {
		return err
	}
	return f.graceFits(cmd, time.Duration(f.ttl))
}

func (f *runFlags) run(v *voice, where *location, cmd *cobra.Command, args []string) error {
	url, byDefault, err := where.find(cmd)
	if err != nil {
		return err
	}
	argv := f.argv(args)
	path, err := findCommand(argv[0]) // now: who waits for an hour shall not learn then of a slip of the pen
	if err != nil {
		return err
	}
	j := f.job(v, url, byDefault, args[0], f.margin(cmd, time.Duration(f.ttl)))
	f.has(j, path, argv)
	return f.conflict(j.run())
}
