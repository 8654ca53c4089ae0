package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/driver"
)

// claimFlags are the flags for claiming a lock. Run has all of them, acquire all except
// --skip, and once and elect have some.
type claimFlags struct {
	noWait       bool
	wait         time.Duration
	exclusive    bool
	shared       bool
	limit        int
	permits      int
	ttl          time.Duration
	minHold      time.Duration
	lockDelay    time.Duration
	labels       labels
	conflictCode int
	quiet        bool
	skip         bool
	verbose      bool
}

// flockHelp explains that scripts for flock can keep their flags.
const flockHelp = `The flags that flock has mean the same here: --nonblock and --nb are -n,
--timeout is -w, and -e is -x. So does its order: NAME -c LINE. Only the exit
code for a held lock differs: it is 75. With -E 1 it is 1, as in flock.`

func newClaimFlags(ttl time.Duration) claimFlags {
	return claimFlags{permits: 1, ttl: ttl, conflictCode: exitHeld}
}

// addFlags adds the flags. ttl and minHold are the help of --ttl and --min-hold.
func (f *claimFlags) addFlags(cmd *cobra.Command, ttl, minHold string) {
	flags := cmd.Flags()
	f.addWait(cmd)
	flags.BoolVarP(&f.exclusive, "exclusive", "x", false, "take an exclusive lock: the default")
	flags.BoolVarP(&f.exclusive, "exclusive-as-flock", "e", false, "")
	must(flags.MarkHidden("exclusive-as-flock"))
	flags.BoolVarP(&f.shared, "shared", "s", false, "take a shared lock, for a reader")
	flags.Var((*number)(&f.limit), "limit", "take a permit of a semaphore that has `N`")
	flags.VarP((*number)(&f.permits), "permits", "k", "with --limit, take `K` permits")
	flags.Var((*seconds)(&f.ttl), "ttl", ttl)
	flags.Var((*seconds)(&f.minHold), "min-hold", minHold)
	flags.Var((*seconds)(&f.lockDelay), "lock-delay", "if the lock expires, grant it to no client for this long")
	f.addRest(cmd)
}

func (f *claimFlags) addWait(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetNormalizeFunc(flockSpelling)
	flags.BoolVarP(&f.noWait, "no-wait", "n", false, "exit at once if the lock is held, or after 3s if the database does not answer")
	flags.VarP((*seconds)(&f.wait), "wait", "w", "give up after this long, connecting included; 0 means --no-wait (default: wait forever, while the database answers)")
}

// addRest adds the flags for labels, messages and the exit code.
func (f *claimFlags) addRest(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.addOwner(cmd)
	flags.VarP((*number)(&f.conflictCode), "conflict-exit-code", "E", "exit `CODE` when the lock is not acquired")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing if the lock is not acquired")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print whom it waits for, on standard error")
}

// addOwner adds the flags that describe the claim to people.
func (f *claimFlags) addOwner(cmd *cobra.Command) {
	cmd.Flags().Var(&f.labels, "label", "a label to show with the lock; repeatable")
}

// addSkip adds --skip, for cron.
func (f *claimFlags) addSkip(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.skip, "skip", false, "if the lock is held, end silently with code 0: -n -q -E 0")
}

// completeFiles makes the shell complete file names for these flags.
func completeFiles(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		must(cmd.RegisterFlagCompletionFunc(name, filesOnly))
	}
}

var filesOnly = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)

// flockSpelling translates flock's name of a flag into pawl's.
func flockSpelling(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "nonblock", "nb":
		name = "no-wait"
	case "timeout":
		name = "wait"
	case "command":
		name = "shell"
	}
	return pflag.NormalizedName(name)
}

// contradiction returns the contradiction in the flags, or "".
func (f *claimFlags) contradiction(given func(flag string) bool) string {
	switch {
	case f.noWait && f.wait > 0:
		return "-n and -w are mutually exclusive"
	case f.shared && f.exclusive:
		return "-s and -x are mutually exclusive"
	case f.exclusive && given("limit"):
		return "-x and --limit are mutually exclusive"
	case f.shared && given("limit"):
		return "-s and --limit are mutually exclusive"
	case given("permits") && !given("limit"):
		return "-k requires --limit"
	case given("limit") && (f.limit < 1 || f.limit >= driver.Unlimited):
		return fmt.Sprintf("--limit is %d; allowed: 1 to %d", f.limit, driver.Unlimited-1)
	case given("limit") && (f.permits < 1 || f.permits > f.limit):
		return fmt.Sprintf("-k is %d; allowed: 1 to --limit, which is %d", f.permits, f.limit)
	case f.quiet && f.verbose:
		return "-q and -v are mutually exclusive"
	case f.skip && (f.wait > 0 || f.verbose || given("conflict-exit-code")):
		return "--skip is -n -q -E 0, and allows no -w, -v or -E"
	case f.conflictCode < 0 || f.conflictCode > 255:
		return fmt.Sprintf("-E is %d; allowed: 0 to 255", f.conflictCode)
	}
	return ""
}

// check returns an error for flags that contradict or are out of range, before the first
// request.
func (f *claimFlags) check(cmd *cobra.Command, name string) error {
	given := cmd.Flags().Changed
	if problem := f.contradiction(given); problem != "" {
		return usageError(cmd, errors.New(problem))
	}
	if err := cmp.Or(
		driver.ValidateName(name),
		driver.ValidateTTL("--ttl", f.ttl),
		driver.ValidateDelay("--min-hold", f.minHold),
		driver.ValidateDelay("--lock-delay", f.lockDelay),
		driver.ValidateDelay("--wait", f.wait),
		validateLabels(f.labels),
	); err != nil {
		return usageError(cmd, err)
	}
	f.noWait = f.noWait || given("wait") && f.wait == 0
	if f.skip {
		f.noWait, f.quiet, f.conflictCode = true, true, 0
	}
	return nil
}

func validateLabels(all labels) error { return (&driver.Owner{Labels: all}).Validate() }

// job makes a job that claims the name with these flags. The caller sets other fields.
func (f *claimFlags) job(v *output, loc *location, url string, byDefault bool, name string) *job {
	switch nested := os.Getenv(fenceVariable) != ""; { // if nested, the outer pawl has warned
	case isMemory(url):
		v.warn("mem: keeps locks in the memory of this process, so it excludes no other process")
	case byDefault && !f.quiet && !nested && v.onTerminal:
		v.say("the default file excludes processes of this user on this host only; for other users or hosts set --url or PAWL_URL")
	}
	j := &job{
		v: v, name: name, url: url, signals: catchSignals(),
		open: func(ctx context.Context) (*pawl.Client, error) { return pawl.Open(ctx, url, f.options(v, loc)) },
	}
	if f.noWait {
		j.noWait, j.maxWait = true, tryTimeout
	} else if f.wait > 0 {
		j.maxWait = f.wait
	}
	return j
}

// conflictError applies -E and -q to an error, if its cause is that the lock was not
// acquired.
func (f *claimFlags) conflictError(err error) error {
	if e, ok := errors.AsType[*exit](err); ok && errors.Is(err, errNotAcquired) {
		e.code = f.conflictCode
		if f.quiet {
			e.err = nil
		}
	}
	return err
}

func (f *claimFlags) options(v *output, loc *location) *pawl.Options {
	waited := false
	parents := parentsFences()
	o := &pawl.Observer{
		Queued: func(e pawl.QueuedEvent) {
			if f.verbose {
				v.say("waiting: %s", words.ErrorText(e.Held))
			}
			// If the fences are equal, the name is on the same backend.
			if own := parents[loc.withoutNamespace(e.Name)]; !waited && own > 0 && e.Held.Holder.Fence == own && !e.Held.Holder.Released {
				v.warn("deadlock: %q is held by the pawl that runs this command (fence %d), which waits for this one to end", e.Name, own)
			}
			waited = true
		},
	}
	if f.verbose {
		o.Acquired = func(e pawl.AcquiredEvent) {
			if waited {
				v.say("acquired %q after %v (fence %d)", e.Name, words.Rounded(e.Waited), e.Lease.Fence())
			}
		}
		o.Failed = func(e pawl.FailedEvent) {
			if e.Op == pawl.OpAcquire { // nothing about renewals: the child needs pawl, and a terminal may be slow
				v.say("%s", words.ErrorText(e.Err))
			}
		}
	}
	options := loc.options()
	options.TTL, options.Labels, options.Observer = f.ttl, f.labels, o
	if f.noWait {
		options.RetryFor = -1
	}
	return options
}

// lockOptions returns the lock options of the flags. With margin 0, the library chooses
// the margin.
func (f *claimFlags) lockOptions(margin time.Duration) []pawl.LockOption {
	options := []pawl.LockOption{
		pawl.WithTTL(f.ttl), pawl.WithMinHold(f.minHold), pawl.WithLockDelay(f.lockDelay),
	}
	if margin > 0 {
		options = append(options, pawl.WithGrace(margin))
	}
	return options
}

// acquireFunc returns a function that claims the lock, and waits for it unless -n is set.
func (f *claimFlags) acquireFunc(name string, options []pawl.LockOption) func(context.Context, *pawl.Client) (jobLease, error) {
	return func(ctx context.Context, c *pawl.Client) (jobLease, error) {
		l := f.lock(c, name, options)
		if f.noWait {
			return l.TryLock(ctx)
		}
		return l.Lock(ctx)
	}
}

// lock returns a lock of the name, of the kind that the flags choose.
func (f *claimFlags) lock(c *pawl.Client, name string, options []pawl.LockOption) pawl.Lockable {
	switch {
	case f.shared:
		return c.RWMutex(name, options...).RLocker()
	case f.limit > 0:
		return c.Semaphore(name, f.limit, options...).Permits(f.permits)
	}
	return c.Mutex(name, options...)
}
