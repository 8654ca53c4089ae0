package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// runFlags are the flags of run.
type runFlags struct {
	noWait       bool
	wait         seconds
	shared       bool
	limit        number
	permits      number
	ttl          seconds
	minHold      seconds
	lockDelay    seconds
	grace        seconds
	labels       labels
	conflictCode number
	shell        string
	hideURL      bool
	quiet        bool
	verbose      bool
}

func newRun(v *voice, where *location) *cobra.Command {
	f := &runFlags{permits: 1, ttl: seconds(30 * time.Second), grace: seconds(5 * time.Second), conflictCode: exitHeld}
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
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows NAME is the child's
	flags.SortFlags = false
	flags.BoolVarP(&f.noWait, "no-wait", "n", false, "exit at once if the lock is held, or after 3s if the database does not answer")
	flags.VarP(&f.wait, "wait", "w", "give up after this long, connecting included; 0 means --no-wait (default: wait forever, while the database answers)")
	flags.BoolVarP(&f.shared, "shared", "s", false, "take a shared lock, for a reader")
	flags.Var(&f.limit, "limit", "take a permit of a semaphore that has `N`")
	flags.VarP(&f.permits, "permits", "k", "with --limit, take `K` permits")
	flags.Var(&f.ttl, "ttl", "how long the lock stays held if pawl is killed")
	flags.Var(&f.minHold, "min-hold", "keep the lock for at least this long, even if COMMAND ends sooner")
	flags.Var(&f.lockDelay, "lock-delay", "if the lock expires, grant it to nobody for this long")
	flags.Var(&f.grace, "grace", "if the lock is lost, how long COMMAND has from SIGTERM to SIGKILL (a short --ttl shortens the default)")
	flags.Var(&f.labels, "label", "a label to show with the lock; repeatable")
	flags.VarP(&f.conflictCode, "conflict-exit-code", "E", "exit `CODE` when the lock is not acquired")
	flags.StringVarP(&f.shell, "shell", "c", "", "run this `LINE` with "+shellName+" instead of COMMAND")
	flags.BoolVar(&f.hideURL, "hide-url", false, "remove "+urlVariable+" from the environment of COMMAND")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing if the lock is not acquired")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print whom it waits for, on standard error")
	for _, name := range []string{"wait", "limit", "permits", "ttl", "min-hold", "lock-delay", "grace", "label", "conflict-exit-code", "shell"} {
		must(cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions))
	}
	return cmd
}

// command is what to run, from what follows NAME.
func (f *runFlags) command(args []string) []string {
	if f.shell != "" {
		return shellCommand(f.shell)
	}
	rest := args[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	return rest
}

// check refuses what cannot be meant, or cannot be, before anything is sent.
func (f *runFlags) check(cmd *cobra.Command, args []string) error {
	given := cmd.Flags().Changed
	problem := ""
	switch {
	case len(args) == 0:
		problem = "missing NAME"
	case given("shell") && f.shell == "":
		problem = "-c is empty"
	case given("shell") && len(args) > 1:
		problem = "-c and COMMAND are mutually exclusive"
	case given("shell"):
	case len(args) > 1 && args[1] != "--" && strings.HasPrefix(args[1], "-"):
		problem = fmt.Sprintf("flags go before NAME, but %q comes after it; put -- before a command of that name", args[1])
	case len(f.command(args)) == 0:
		problem = "missing COMMAND"
	case f.command(args)[0] == "":
		problem = "COMMAND is empty"
	}
	switch {
	case problem != "":
	case f.noWait && f.wait > 0:
		problem = "-n and -w are mutually exclusive"
	case f.shared && given("limit"):
		problem = "-s and --limit are mutually exclusive"
	case given("permits") && !given("limit"):
		problem = "-k requires --limit"
	case given("limit") && (f.limit < 1 || f.limit >= driver.Unlimited):
		problem = fmt.Sprintf("--limit is %d; allowed: 1 to %d", f.limit, driver.Unlimited-1)
	case given("limit") && (f.permits < 1 || f.permits > f.limit):
		problem = fmt.Sprintf("-k is %d; allowed: 1 to --limit, which is %d", f.permits, f.limit)
	case f.quiet && f.verbose:
		problem = "-q and -v are mutually exclusive"
	case f.conflictCode < 0 || f.conflictCode > 255:
		problem = fmt.Sprintf("-E is %d; allowed: 0 to 255", f.conflictCode)
	}
	if problem != "" {
		return usage(cmd, errors.New(problem))
	}
	owner := driver.Owner{Labels: f.labels}
	for _, err := range []error{
		driver.ValidateName(args[0]),
		driver.ValidateTTL("--ttl", time.Duration(f.ttl)),
		driver.ValidateDelay("--min-hold", time.Duration(f.minHold)),
		driver.ValidateDelay("--lock-delay", time.Duration(f.lockDelay)),
		driver.ValidateDelay("--grace", time.Duration(f.grace)),
		driver.ValidateDelay("--wait", time.Duration(f.wait)),
		owner.Validate(),
	} {
		if err != nil {
			return usage(cmd, err)
		}
	}
	if given("grace") {
		if err := f.graceFits(); err != nil {
			return usage(cmd, err)
		}
	}
	f.noWait = f.noWait || given("wait") && f.wait == 0
	return nil
}

// reserve is what of a lease is left for the end of a grace, so that it does not end with
// the lease. Grace and reserve are half of the lease at most: the other half is for
// renewals.
func reserve(ttl time.Duration) time.Duration { return max(ttl/10, 10*time.Millisecond) }

// graceFits refuses a grace that the command would not get when its lock is lost.
func (f *runFlags) graceFits() error {
	ttl, grace := time.Duration(f.ttl), time.Duration(f.grace)
	most := max(ttl/2-reserve(ttl), 0)
	if grace <= most {
		return nil
	}
	problem := fmt.Errorf("--grace is %v; allowed with --ttl %v: at most %v", grace, ttl, most)
	if need := max((grace+1)/2*5, 2*grace+20*time.Millisecond); driver.ValidateTTL("", need) == nil {
		problem = fmt.Errorf("%w; for a longer one, set --ttl to %v", problem, need)
	}
	return problem
}

func (f *runFlags) run(v *voice, where *location, cmd *cobra.Command, args []string) error {
	url, _, err := where.find(cmd)
	if err != nil {
		return err
	}
	argv := f.command(args)
	path, err := findCommand(argv[0]) // now: who waits for an hour shall not learn then of a slip of the pen
	if err != nil {
		return err
	}
	if strings.HasPrefix(url, "mem:") {
		v.warn("mem: keeps locks in the memory of this process, so it keeps nobody out")
	}
	j := &job{
		v: v, name: args[0], path: path, argv: argv, grace: time.Duration(f.grace),
		signals: catchSignals(),
		open:    func(ctx context.Context) (*pawl.Client, error) { return pawl.Open(ctx, url, f.options(v)) },
		acquire: f.acquire(args[0], cmd.Flags().Changed("grace")),
	}
	if f.hideURL {
		j.hidden = []string{urlVariable}
	}
	if f.noWait {
		j.try, j.patience = true, tryPatience
	} else if f.wait > 0 {
		j.patience = time.Duration(f.wait)
	}
	err = j.run()
	if e, ok := errors.AsType[*exit](err); ok && errors.Is(err, errNotAcquired) {
		e.code = int(f.conflictCode)
		if f.quiet {
			e.err = nil
		}
	}
	return err
}

// options are the client's.
func (f *runFlags) options(v *voice) *pawl.Options {
	waited := false
	own := parentsFence()
	o := &pawl.Observer{
		Queued: func(e pawl.QueuedEvent) {
			if f.verbose {
				v.say("waiting: %s", bare(e.Held))
			}
			if !waited && own.holds(e) {
				v.warn("deadlock: %q is held by the pawl that runs this command (fence %d), which waits for this one to end", e.Name, own.fence)
			}
			waited = true
		},
	}
	if f.verbose {
		o.Acquired = func(e pawl.AcquiredEvent) {
			if waited {
				v.say("acquired %q after %v (fence %d)", e.Name, brief(e.Waited), e.Lease.Fence())
			}
		}
		o.Failed = func(e pawl.FailedEvent) {
			if e.Op == "acquire" { // later on there is a child to look after, and a terminal may be slow
				v.say("%s", bare(e.Err))
			}
		}
	}
	return &pawl.Options{TTL: time.Duration(f.ttl), Labels: f.labels, Observer: o}
}

// acquire claims the lock of the kind that the flags say.
func (f *runFlags) acquire(name string, graceGiven bool) func(context.Context, *pawl.Client) (*pawl.Lease, error) {
	ttl, grace := time.Duration(f.ttl), time.Duration(f.grace)
	if !graceGiven {
		grace = min(grace, ttl/4) // more of a short lease would leave too little of it for renewals
	}
	options := []pawl.Option{
		pawl.WithTTL(ttl), pawl.WithMinHold(time.Duration(f.minHold)), pawl.WithLockDelay(time.Duration(f.lockDelay)),
		// The loss is told so early that the child has its grace, or what fits, before
		// the lease ends.
		pawl.WithMargin(min(grace+reserve(ttl), ttl/2)),
	}
	return func(ctx context.Context, c *pawl.Client) (*pawl.Lease, error) {
		switch {
		case f.shared && f.noWait:
			return c.RWMutex(name, options...).TryRLock(ctx)
		case f.shared:
			return c.RWMutex(name, options...).RLock(ctx)
		case f.limit > 0 && f.noWait:
			return c.Semaphore(name, int(f.limit), options...).TryAcquire(ctx, int(f.permits))
		case f.limit > 0:
			return c.Semaphore(name, int(f.limit), options...).Acquire(ctx, int(f.permits))
		case f.noWait:
			return c.Mutex(name, options...).TryLock(ctx)
		default:
			return c.Mutex(name, options...).Lock(ctx)
		}
	}
}
