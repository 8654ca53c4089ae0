package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/driver"
)

type onceFlags struct {
	jobFlags
	atLeastOnce bool
	every       time.Duration
	startTime   time.Time // when this pawl started, on this host's clock
	key         string    // empty with --every
	args        []string  // NAME and COMMAND, without KEY
}

func newOnce(v *output, loc *location) *cobra.Command {
	f := &onceFlags{jobFlags: newJobFlags()}
	cmd := &cobra.Command{
		Use:   "once [flags] NAME KEY|--every D -- COMMAND [ARG...]",
		Short: "Run a command on one of many hosts, once for each key or period",
		Long: `Once runs COMMAND under the lock NAME on one of the hosts that start it. On the
others it is done, and once ends with code 0.

With --every D, a start counts as done if it comes less than half of D after the
last start that ran. Set D to the shortest time from one start to the next. Then
of the hosts that have the same line in their crontabs, one runs it each time,
and the others may be late by less than half of D. The clock of the database
decides. The wrong clock of a host matters only because its cron then starts too
early or too late.

With KEY, once runs COMMAND unless it was run for KEY, or a greater one. Keys
are compared as text. So all keys of a NAME must have one form: the same length,
and the same punctuation. Once refuses a key of another form.

The name keeps the last key, or the time of the last start, by default for a day
after its last run: a host that is later than that runs COMMAND again. Do not
lock NAME with anything else.

A task is done when COMMAND starts: COMMAND runs at most once, even if it fails
or its host dies, and the other hosts do not wait for it. With --at-least-once
it is done when COMMAND has ended with code 0, and the other hosts wait. If
COMMAND fails or its host dies, the next one runs it.

COMMAND gets the variables PAWL_NAME, PAWL_FENCE and PAWL_KEY, which is KEY or
the time of the start. It is started and stopped like the command of pawl run:
see pawl run --help.

The exit code is 0 if it was done. Otherwise it is that of COMMAND, or 128 + n
when signal n ended it, or:
` + runCodes,
		Example: `  # In the crontab of each host, each night.
  0 3 * * *  pawl once --every 24h nightly -- ./report.sh
  # Each day until it has succeeded, tried each hour. In a crontab % needs a \.
  0 * * * *  pawl once --at-least-once daily "$(date -u +\%F)" -- ./report.sh`,
		Args:              f.check,
		ValidArgsFunction: completeRun(loc),
		RunE:              func(cmd *cobra.Command, _ []string) error { return f.run(v, loc, cmd) },
	}
	f.addWait(cmd)
	cmd.Flags().Var((*seconds)(&f.ttl), "ttl", "how long the lock stays held if pawl is killed")
	cmd.Flags().Var((*seconds)(&f.every), "every", "the time from one start to the next, instead of KEY")
	cmd.Flags().BoolVar(&f.atLeastOnce, "at-least-once", false, "it is done when COMMAND has succeeded, not when it starts")
	cmd.Flags().Var((*seconds)(&f.maxHold), "max-hold", "stop COMMAND when it has run for this long")
	f.addRest(cmd)
	f.addSkip(cmd)
	f.commandFlags.addFlags(cmd)
	return cmd
}

func (f *onceFlags) check(cmd *cobra.Command, args []string) error {
	f.startTime, f.args = time.Now(), args
	separator := slices.Index(args, "--")
	if separator < 0 && f.shell != "" {
		separator = len(args)
	}
	hasEvery := cmd.Flags().Changed("every")
	switch {
	case len(args) == 0: // commandFlags.check refuses it
	case separator != 1 && separator != 2:
		return usageError(cmd, errors.New("want NAME, KEY or --every, and -- before COMMAND"))
	case separator == 1 && !hasEvery:
		return usageError(cmd, errors.New("missing KEY or --every"))
	case separator == 2 && hasEvery:
		return usageError(cmd, errors.New("KEY and --every are mutually exclusive"))
	case separator == 2 && args[1] == "":
		return usageError(cmd, errors.New("KEY is empty"))
	case separator == 2:
		f.key, f.args = args[1], slices.Delete(slices.Clone(args), 1, 2)
	case f.every < time.Second:
		return usageError(cmd, fmt.Errorf("--every is %v; allowed: at least 1s", f.every))
	case driver.ValidateName(args[0]+clockSuffix) != nil && driver.ValidateName(args[0]) == nil:
		return usageError(cmd, fmt.Errorf("name has %d bytes; allowed with --every: at most %d", len(args[0]), driver.MaxName-len(clockSuffix)))
	}
	if err := f.jobFlags.check(cmd, f.args); err != nil {
		return err
	}
	return usageError(cmd, driver.ValidateValue([]byte(f.key)))
}

func (f *onceFlags) run(v *output, loc *location, cmd *cobra.Command) error {
	j, options, err := f.prepareJob(v, loc, cmd, f.args)
	if err != nil {
		return err
	}
	j.acquire = func(ctx context.Context, c *pawl.Client) (jobLease, error) { return f.claim(ctx, c, j, options) }
	if f.atLeastOnce {
		j.storeDone = func(l jobLease) error {
			return l.(*pawl.Lease).SetValue(context.Background(), []byte(j.taskKey)) //nolint:forcetypeassert // it has one name
		}
	}
	err = j.run()
	if done, ok := errors.AsType[*pawl.ValueNotBelowError](err); ok {
		if f.verbose {
			v.sayDone(j.name, done.Value, f.every)
		}
		return nil
	}
	return f.conflictError(err)
}

// claim takes the lock for a task that is not done. If the task is done, the error is a
// ValueNotBelowError.
func (f *onceFlags) claim(ctx context.Context, c *pawl.Client, j *job, options []pawl.LockOption) (jobLease, error) {
	t := task{key: f.key, below: f.key}
	if f.every > 0 {
		start, err := serverTime(ctx, c, j.name, f.startTime)
		if err != nil {
			return nil, err
		}
		// Two starts that are less than half a period apart belong to one tick.
		t = task{key: pawl.TimeKey(start), below: pawl.TimeKey(start.Add(-f.every / 2))}
	}
	e, err := c.Inspect(ctx, j.name)
	if err == nil {
		err = t.checkForm(j.name, e.Value)
	}
	if err != nil {
		return nil, err
	}
	j.taskKey = t.key
	options = append(options, pawl.WithValueBelow([]byte(t.below)))
	if !f.atLeastOnce {
		options = append(options, pawl.WithValue([]byte(t.key)))
	}
	lease, err := f.acquireFunc(j.name, f.withHealth(options, j))(ctx, c)
	if done, ok := errors.AsType[*pawl.ValueNotBelowError](err); ok {
		if err := t.checkForm(j.name, done.Value); err != nil { // another client may have just written it
			return nil, err
		}
	}
	return lease, err
}

// sayDone prints that the task is done, with the stored key.
func (v *output) sayDone(name string, stored []byte, every time.Duration) {
	last := words.QuoteIfNeeded(string(stored))
	if every > 0 {
		v.say("%q is done: its last start was at %s, less than half of --every ago", name, last)
		return
	}
	v.say("%q is done: its last key is %s", name, last)
}

// recordDone records that the command has succeeded.
func (j *job) recordDone(lease jobLease) error {
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = j.storeDone(lease)
	}()
	switch {
	case !j.await(done):
		return notRecorded(fmt.Errorf("the database has not answered: %w", context.DeadlineExceeded))
	case err != nil:
		return notRecorded(err)
	}
	return nil
}

// notRecorded returns the exit error after a success that could not be recorded.
func notRecorded(err error) error {
	return &exit{code: codeOf(err), err: fmt.Errorf("the command has succeeded, but that could not be noted, so another may run it again: %w", err)}
}

// A task is the work of one call of `pawl once`. The name keeps the key of the last task
// that was done. If that key is not less than below, this task is done, too. The grant
// compares the two in one step of the database.
type task struct{ key, below string }

// clockSuffix is the end of the name of the lock that serverTime takes.
const clockSuffix = "#clock"

// serverTime converts a time of this host's clock, which may be wrong, to the server's.
// It takes a lock that all hosts share, and reads the time of the grant from the entry.
func serverTime(ctx context.Context, c *pawl.Client, name string, at time.Time) (time.Time, error) {
	name += clockSuffix
	sent := time.Now()
	lease, err := c.RWMutex(name).RLock(ctx)
	if err != nil {
		return time.Time{}, err
	}
	granted := sent.Add(time.Since(sent) / 2)
	defer lease.Release(ctx) //nolint:errcheck // it expires, and excludes no other host
	e, err := c.Inspect(ctx, name)
	if err != nil {
		return time.Time{}, err
	}
	for _, h := range e.Holders {
		if h.Fence == lease.Fence() {
			return h.Since.Add(-granted.Sub(at)), nil
		}
	}
	return time.Time{}, fmt.Errorf("the time of the server is not known: %q (fence %d) was lost at once: %w", name, lease.Fence(), pawl.ErrUnavailable)
}

// checkForm returns an error if the task's key has another form than the stored one. Keys
// of different forms would be greater or smaller by chance, so tasks would be skipped
// without a message, maybe for ever.
func (t task) checkForm(name string, stored []byte) error {
	if stored == nil || formOf(string(stored)) == formOf(t.key) {
		return nil
	}
	return &otherFormError{name, t.key, string(stored)}
}

// formOf returns the form of a key: its length, its punctuation, and the positions of its
// digits.
func formOf(key string) string {
	return keyWord.ReplaceAllStringFunc(key, func(word string) string {
		kind := "0"
		if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsDigit(r) }) {
			kind = "a"
		}
		return strings.Repeat(kind, utf8.RuneCountInString(word))
	})
}

// keyWord is a run of letters and digits.
var keyWord = regexp.MustCompile(`[\pL\p{Nd}]+`)

// otherFormError is the error for a key of another form. It counts as wrong usage.
type otherFormError struct{ name, key, stored string }

func (e *otherFormError) Error() string {
	return fmt.Sprintf("the last key of %q is %s, and %s has another form, so they cannot be compared; give keys of a new form a new NAME", e.name, words.QuoteIfNeeded(e.stored), words.QuoteIfNeeded(e.key))
}

func (*otherFormError) Is(target error) bool { return target == pawl.ErrInvalid }
