package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// commandFlags are the flags for running a command, which run, once and elect share.
type commandFlags struct {
	shell   string
	grace   time.Duration
	hideURL bool
	health  string
}

const defaultGrace = 5 * time.Second

func (f *commandFlags) addFlags(cmd *cobra.Command) {
	f.grace = defaultGrace
	flags := cmd.Flags()
	flags.SetInterspersed(false) // everything after NAME belongs to COMMAND
	flags.SortFlags = false
	flags.Var((*seconds)(&f.grace), "grace", "if the lock is lost, how long COMMAND has from SIGTERM to SIGKILL (a short --ttl shortens the default)")
	flags.StringVarP(&f.shell, "shell", "c", "", "run this `LINE` with "+shellName+" instead of COMMAND")
	flags.BoolVar(&f.hideURL, "hide-url", false, "remove "+urlVariable+" and "+urlFileVariable+" from the environment of COMMAND; it can still read them in the environment of pawl")
	flags.StringVar(&f.health, "health", "", "run this `LINE` with "+shellName+" at intervals of --ttl/3; if it fails or takes longer, stop COMMAND and give up the lock")
}

// argv returns the command to run, from the arguments after NAME or from --shell.
func (f *commandFlags) argv(args []string) []string {
	switch {
	case f.shell != "":
		return shellCommand(f.shell)
	case isFlockOrder(args):
		return shellCommand(args[2])
	}
	rest := args[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	return rest
}

// isFlockOrder reports whether the arguments are in flock's order: NAME -c LINE.
func isFlockOrder(args []string) bool {
	return len(args) == 3 && (args[1] == "-c" || args[1] == "--command")
}

// check returns an error for wrong arguments, such as a missing command.
func (f *commandFlags) check(cmd *cobra.Command, args []string) error {
	shell := cmd.Flags().Changed("shell")
	problem := ""
	switch {
	case len(args) == 0:
		problem = "missing NAME"
	case shell && f.shell == "" || !shell && isFlockOrder(args) && args[2] == "":
		problem = "-c is empty"
	case shell && len(args) > 1 && args[1] == "-c":
		problem = "-c is given twice"
	case shell && len(args) > 1:
		problem = "-c and COMMAND are mutually exclusive"
	case shell || isFlockOrder(args):
	case len(args) > 1 && args[1] == "-c":
		problem = "-c takes one LINE"
	case len(args) > 1 && args[1] != "--" && strings.HasPrefix(args[1], "-"):
		problem = fmt.Sprintf("flags go before NAME, but %q comes after it; put -- before a command of that name", args[1])
	case len(f.argv(args)) == 0:
		problem = "missing COMMAND"
	case f.argv(args)[0] == "":
		problem = "COMMAND is empty"
	}
	if problem == "" && cmd.Flags().Changed("health") && f.health == "" {
		problem = "--health is empty"
	}
	if problem != "" {
		return usageError(cmd, errors.New(problem))
	}
	return nil
}

// withHealth returns the options of a lock with the check of --health.
func (f *commandFlags) withHealth(options []pawl.LockOption, j *job) []pawl.LockOption {
	if f.health == "" {
		return options
	}
	return append(slices.Clip(options), pawl.WithHealth(func(ctx context.Context) error {
		if c := j.child.Load(); c != nil {
			return c.runCheck(ctx, f.health)
		}
		return nil
	}))
}

// minReserve is the shortest time between the SIGKILL and the end of the lease.
const minReserve = 20 * time.Millisecond

// reserve returns the part of a lease between the end of the grace and the end of the
// lease; see [killTime]. Grace and reserve take at most half of the lease: the other half
// is for renewals.
func reserve(ttl time.Duration) time.Duration { return max(ttl/10, minReserve) }

// checkGrace returns an error for a --grace that is too long: after a loss of the lock,
// the command would not get all of it.
func (f *commandFlags) checkGrace(cmd *cobra.Command, ttl time.Duration) error {
	grace := f.grace
	if err := driver.ValidateDelay("--grace", grace); err != nil {
		return usageError(cmd, err)
	}
	maxGrace := max(ttl/2-reserve(ttl), 0)
	if grace <= maxGrace || !cmd.Flags().Changed("grace") {
		return nil
	}
	problem := fmt.Errorf("--grace is %v; allowed with --ttl %v: at most %v", grace, ttl, maxGrace)
	minTTL := max((grace+1)/2*5, 2*(grace+minReserve)) // the TTL for which maxGrace is grace
	if driver.ValidateTTL("", minTTL) == nil {
		problem = fmt.Errorf("%w; for a longer one, set --ttl to %v", problem, minTTL)
	}
	return usageError(cmd, problem)
}

// margin returns how long before the end of its lease a lock counts as lost. It leaves
// the child its grace, or the part that fits, before another client can get the lock.
func (f *commandFlags) margin(cmd *cobra.Command, ttl time.Duration) time.Duration {
	grace := f.grace
	if !cmd.Flags().Changed("grace") {
		grace = min(grace, ttl/4) // more would leave too little of a short lease for renewals
	}
	return min(grace+reserve(ttl), ttl/2)
}

// jobFlags are the flags that run, once and elect share: how to claim the lock, and which
// command to run under it.
type jobFlags struct {
	claimFlags
	commandFlags
	maxHold time.Duration // elect has no such flag
}

func newJobFlags() jobFlags { return jobFlags{claimFlags: newClaimFlags(30 * time.Second)} }

func (f *jobFlags) check(cmd *cobra.Command, args []string) error {
	if err := f.commandFlags.check(cmd, args); err != nil {
		return err
	}
	if err := f.claimFlags.check(cmd, args[0]); err != nil {
		return err
	}
	if cmd.Flags().Changed("max-hold") {
		if err := driver.ValidateTTL("--max-hold", f.maxHold); err != nil {
			return usageError(cmd, err)
		}
	}
	return f.checkGrace(cmd, f.ttl)
}

// prepareJob makes the job that runs the command of args under the lock args[0]. It also
// returns the options of that lock without --health. The caller sets job.acquire.
func (f *jobFlags) prepareJob(v *output, loc *location, cmd *cobra.Command, args []string) (*job, []pawl.LockOption, error) {
	v.neverBlock()
	url, byDefault, err := loc.findURL(cmd)
	if err != nil {
		return nil, nil, err
	}
	argv := f.argv(args)
	path, err := findCommand(argv[0]) // here, so that a typo shows before the wait for the lock
	if err != nil {
		return nil, nil, err
	}
	j := f.job(v, loc, url, byDefault, args[0])
	j.path, j.argv, j.grace, j.maxHold = path, argv, f.grace, f.maxHold
	if f.hideURL {
		j.hidden = []string{urlVariable, urlFileVariable}
	}
	return j, f.lockOptions(f.margin(cmd, f.ttl)), nil
}
