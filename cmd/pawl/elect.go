package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/driver"
)

type electFlags struct {
	jobFlags
	value string
}

func newElect(v *output, loc *location) *cobra.Command {
	f := &electFlags{jobFlags: newJobFlags()}
	cmd := &cobra.Command{
		Use:   "elect [flags] NAME [--] COMMAND [ARG...]",
		Short: "Run a command on one of many hosts, the leader",
		Long: `Elect waits until it leads NAME, first come, first served, and runs COMMAND.
Start it on each host: one of them runs COMMAND, and the next one does when that
one ends or crashes. NAME is an ordinary lock: pawl show shows the leader.

If the lead is lost, COMMAND is stopped before another can lead, and elect waits
for the lead again. When COMMAND ends by itself, so does elect, and the next one
leads. While the database does not answer, elect tries again, except at its
start. An error that no retry can cure, such as a changed password, ends it.

COMMAND gets two variables. PAWL_NAME is NAME. PAWL_FENCE is the term: a number
greater than that of every earlier leader. Send it along with what COMMAND
writes, and let the receiver refuse a smaller one.
` + systemHelp + `
` + electCodes,
		Example: `  # On each host: one of them runs it.
  pawl elect scheduler -- ./scheduler
  # Tell others where the leader is.
  pawl elect --value "$(hostname):8080" api -- ./server
  pawl show --json api | jq -r 'select(.holders != []) | .value' | base64 -d
  # The next leader follows 10 s after the crash of one.
  pawl elect --ttl 10 scheduler -- ./scheduler`,
		Args:              f.check,
		ValidArgsFunction: completeRun(loc),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(v, loc, cmd, args) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.value, "value", "", "a `TEXT` that the leader shows of itself, such as its address")
	flags.Var((*seconds)(&f.ttl), "ttl", "how long the lead stays taken if pawl is killed")
	flags.Var((*seconds)(&f.lockDelay), "lock-delay", "if the lead expires, give it to no client for this long")
	f.addOwner(cmd)
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print whom it waits for, on standard error")
	f.commandFlags.addFlags(cmd)
	return cmd
}

func (f *electFlags) check(cmd *cobra.Command, args []string) error {
	if err := f.jobFlags.check(cmd, args); err != nil {
		return err
	}
	return usageError(cmd, driver.ValidateValue([]byte(f.value)))
}

func (f *electFlags) run(v *output, loc *location, cmd *cobra.Command, args []string) error {
	j, options, err := f.prepareJob(v, loc, cmd, args)
	if err != nil {
		return err
	}
	e := &election{job: j, terms: make(chan electionTerm), ctrlZ: make(stopKey, 1)}
	e.open = func(ctx context.Context) (*pawl.Client, error) {
		return pawl.Open(ctx, j.url, e.observe(f.options(v, loc)))
	}
	e.acquire = func(context.Context, *pawl.Client) (jobLease, error) { return nil, nil } // elect campaigns instead
	e.options = f.withHealth(options, j)
	if cmd.Flags().Changed("value") {
		e.options = append(e.options, pawl.WithValue([]byte(f.value)))
	}
	return e.run()
}

// An election is one `pawl elect`: a job that runs its command in each of its terms,
// until the command ends without being stopped.
type election struct {
	*job
	options     []pawl.LockOption
	lastLease   *pawl.Lease // written before its term is announced
	backendDown atomic.Bool // pawl has warned that the backend fails
	terms       chan electionTerm
	ctrlZ       stopKey // catches Ctrl-Z between two terms
}

// An electionTerm is one term. The goroutine that receives the signals runs its command.
type electionTerm struct {
	lease *pawl.Lease
	end   chan error // gets the exit error, or nil if the lead was lost
}

// errDone ends a campaign, because the command has ended.
var errDone = errors.New("done")

// observe makes the client pass its leases to the election, and warn when the backend
// is down.
func (e *election) observe(o *pawl.Options) *pawl.Options {
	own := &pawl.Observer{Acquired: func(a pawl.AcquiredEvent) {
		e.lastLease = a.Lease
		e.backendDown.Store(false)
	}}
	if o.Observer.Failed == nil { // it is not set without -v
		own.Failed = func(f pawl.FailedEvent) {
			backendErr, _ := errors.AsType[*pawl.BackendError](f.Err)
			permanent := backendErr != nil && backendErr.Permanent // no retry can succeed, so the election ends
			if !permanent && f.Op == pawl.OpAcquire && !e.backendDown.Swap(true) {
				e.v.warn("%s; trying again", words.ErrorText(f.Err))
			}
		}
	}
	o.Observer = pawl.JoinObservers(own, o.Observer)
	return o
}

func (e *election) run() error {
	client, _, err := e.claim()
	if err != nil {
		e.releaseAndClose(client, nil, releaseTimeout)
		return err
	}
	defer e.releaseAndClose(client, nil, releaseTimeout)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var runErr error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runErr = client.Election(e.name, e.options...).Run(ctx, e.lead)
	}()
	for {
		select {
		case t := <-e.terms:
			end := e.runTerm(t.lease)
			t.end <- end
			switch {
			case end == nil: // the lead was lost
			case e.await(ended):
				return e.exitError(end, runErr)
			default:
				e.v.warnNotReleased(e.name)
				return e.exitError(end, nil)
			}
		case <-ended:
			return &exit{code: codeOf(runErr), err: runErr}
		case <-e.ctrlZ:
			e.ctrlZ.stopPawl()
		case s := <-e.signals:
			if isContinue(s) {
				continue // the signal was meant for the command of an earlier term
			}
			cancel()
			e.startEndTimeout()
			e.await(ended) // the campaign releases a grant that arrives late
			return stoppedBy(s)
		}
	}
}

// lead is the elected function. When the command ends, it returns an error: if it
// returned nil and the lead was lost at the same moment, the Election would campaign
// again.
func (e *election) lead(ctx context.Context) error {
	t := electionTerm{lease: e.lastLease, end: make(chan error, 1)}
	select {
	case e.terms <- t:
		return <-t.end
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runTerm runs the command under a lease. It returns nil if the lead was lost, and the
// command stopped. Otherwise it returns the exit error of elect.
func (e *election) runTerm(lease *pawl.Lease) error {
	e.reportedLost, e.endBy = false, time.Time{}
	e.ctrlZ.stopCatching()
	end := e.hold(lease)
	e.ctrlZ.catch()
	switch {
	case e.reportedLost && errors.Is(end, errStillRunning):
		return end // after nil, the next term would start beside processes of this one
	case e.reportedLost:
		return nil
	case end == nil:
		return errDone
	}
	return end
}

// exitError returns the exit error of elect. end is the result of the last term, and err
// the result of the election, or nil if it did not end in time.
func (e *election) exitError(end, err error) error {
	if errors.Is(err, pawl.ErrLost) && !e.reportedLost {
		lost, _ := errors.AsType[*pawl.LostError](err)
		e.v.warnReleased(lost)
	}
	if errors.Is(end, errDone) {
		return nil
	}
	return end
}
