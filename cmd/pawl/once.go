package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/driver"
)

type onceFlags struct {
	claimFlags
	commandFlags
	untilDone bool
	maxHold   seconds
	key       string   // of the task
	args      []string // NAME and COMMAND, without KEY
}

func newOnce(v *voice, where *location) *cobra.Command {
	f := &onceFlags{claimFlags: newClaimFlags(30 * time.Second)}
	cmd := &cobra.Command{
		Use:   "once [flags] NAME [KEY] -- COMMAND [ARG...]",
		Short: "Run a command on one of many hosts, once for each key",
		Long: `Once runs COMMAND under the lock NAME, unless it was run for KEY, or a greater
one, on any host. Then it ends with code 0. Keys are compared as text. Without
KEY, the key is the minute in which pawl starts, in UTC: one of the hosts that
have the same line in their crontab runs it. If cron delays the start on some
hosts by a minute or more, give a KEY that is the same on all, such as the day.

The name keeps the last key, by default for a day after its last run. Use it for
nothing else.

A key is done when COMMAND starts: COMMAND runs at most once, even if it fails
or its host dies, and the other hosts do not wait for it. With --until-done a
key is done when COMMAND has ended with code 0, and the other hosts wait. If
COMMAND fails or its host dies, the next one runs it: at least once.

COMMAND gets the variables PAWL_NAME, PAWL_FENCE and PAWL_KEY. It is started and
stopped as that of pawl run: see pawl run --help.

The exit code is 0 if KEY was done; else that of COMMAND, or 128 + n when signal
n ended it, or:
` + runCodes,
		Example: `  # In the crontab of each host.
  0 3 * * *  pawl once nightly -- ./report.sh
  # Once a day, even if cron starts it more often.
  pawl once --until-done daily "$(date -u +%F)" -- ./report.sh`,
		DisableFlagsInUseLine: true,
		Args:                  func(cmd *cobra.Command, args []string) error { return f.check(cmd, args) },
		ValidArgsFunction:     completeRun(where),
		RunE:                  func(cmd *cobra.Command, _ []string) error { return f.run(v, where, cmd) },
	}
	f.addWait(cmd)
	cmd.Flags().Var(&f.ttl, "ttl", "how long the lock stays held if pawl is killed")
	cmd.Flags().BoolVar(&f.untilDone, "until-done", false, "a key is done when COMMAND has succeeded, not when it starts")
	cmd.Flags().Var(&f.maxHold, "max-hold", "stop COMMAND when it has run for this long")
	noFiles(cmd, "ttl", "max-hold")
	f.addRest(cmd)
	f.addSkip(cmd)
	f.commandFlags.add(cmd)
	return cmd
}

func (f *onceFlags) check(cmd *cobra.Command, args []string) error {
	f.key, f.args = pawl.TimeKey(time.Now().Truncate(time.Minute)), args
	at := slices.Index(args, "--")
	if at < 0 && f.shell != "" {
		at = len(args)
	}
	switch {
	case len(args) == 0: // commandFlags.check refuses it
	case at != 1 && at != 2:
		return usage(cmd, errors.New("want NAME, perhaps KEY, and -- before COMMAND"))
	case at == 2:
		f.key, f.args = args[1], slices.Delete(slices.Clone(args), 1, 2)
		if f.key == "" {
			return usage(cmd, errors.New("KEY is empty; leave it out for the minute"))
		}
	}
	if err := f.commandFlags.check(cmd, f.args); err != nil {
		return err
	}
	if err := driver.ValidateValue([]byte(f.key)); err != nil {
		return usage(cmd, err)
	}
	if err := f.claimFlags.check(cmd, f.args[0]); err != nil {
		return err
	}
	if cmd.Flags().Changed("max-hold") {
		if err := driver.ValidateTTL("--max-hold", time.Duration(f.maxHold)); err != nil {
			return usage(cmd, err)
		}
	}
	return f.graceFits(cmd, time.Duration(f.ttl))
}

func (f *onceFlags) run(v *voice, where *location, cmd *cobra.Command) error {
	v.neverBlock()
	url, byDefault, err := where.find(cmd)
	if err != nil {
		return err
	}
	argv := f.argv(f.args)
	path, err := findCommand(argv[0])
	if err != nil {
		return err
	}
	margin := f.margin(cmd, time.Duration(f.ttl))
	j := f.job(v, where, url, byDefault, f.args[0], margin)
	f.has(j, path, argv)
	j.key, j.maxHold = f.key, time.Duration(f.maxHold)
	options := append(f.lockOptions(margin), pawl.WithAbove([]byte(f.key)))
	if f.untilDone {
		j.succeeded = func(l jobLease) error {
			return l.(*pawl.Lease).SetValue(context.Background(), []byte(f.key)) //nolint:forcetypeassert // it has one name
		}
	} else {
		options = append(options, pawl.WithValue([]byte(f.key)))
	}
	j.acquire = f.acquire(j.name, f.checked(options, j))
	err = j.run()
	if errors.Is(err, pawl.ErrValue) {
		if f.verbose {
			v.sayDone(j.name, f.key)
		}
		return nil
	}
	return f.conflict(err)
}

func (v *voice) sayDone(name, key string) { v.say("%q was done for %s", name, words.Plain(key)) }

// notNoted is the exit after a success that could not be recorded.
func notNoted(err error) error {
	return &exit{code: codeOf(err), err: fmt.Errorf("the command has succeeded, but that could not be noted, so another may run it again: %w", err)}
}
