package pawl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// Election makes one of many instances the leader. [Client.Election] returns an Election;
// each instance calls [Election.Run].
type Election struct {
	lock
	client *Client

	mu      sync.Mutex // protects all fields below
	running bool       // Run is under way
	leading *Lease     // the lease of this instance's term, or nil
	resign  context.CancelCauseFunc
	value   []byte // the value of the next term
	endErr  error  // the error that ended the last term, campaign or Run; see Status
}

// Election returns the election of a name. It is a mutex of that name: see [Client.Mutex]
// for names. Useful options:
//
//   - WithTTL: the longest time from a dead leader's last renewal to the next term.
//   - WithValue: a value that the leader publishes, such as its address.
//   - WithHealth: a leader that is stuck loses the lead.
//   - WithMaxHold: each leader loses the lead after that time.
//
// Run refuses WithValueBelow and WithWait.
func (c *Client) Election(name string, options ...LockOption) *Election {
	e := &Election{lock: c.lock(name, options), client: c}
	e.value = cloneValue(e.o.value)
	return e
}

func (e *Election) isMade() bool { return e != nil && e.client.isMade() }

// Leader identifies the leader. The zero Leader means that no instance leads.
type Leader struct {
	// Term is the fence of the leader's lease, so it rises with each new leader. 0 means
	// that no instance leads.
	Term  uint64
	Owner Owner     // identifies the leader to people
	Value []byte    // the value that the leader publishes, see WithValue; nil if none
	Since time.Time // when the leader's term began, on the backend's clock
}

// errResigned is the cause of the end of an elected function's context.
var errResigned = errors.New("pawl: resigned")

// Run waits until this instance leads, and runs f. Processes lead in the order in which
// they came. The term is the fence of the leader's lease: in f, FenceOf(ctx, NAME), with
// the name of the Election, returns it.
//
// f's context is ctx. It also ends when this instance resigns or loses the lead, before
// another instance can lead. f must then return, because Run waits for it. After a
// resignation, or when ctx ends, the client renews the lease until f has returned,
// however long f takes, and the next leader begins after that. After a loss, an f that
// goes on may run at the same time as the next leader. So may, for a moment, an f whose
// process was paused. Guard the writes of f with the term.
//
// When f returns, there are four cases:
//
//   - f returned while this instance still led: Run returns f's error, or nil.
//   - The lead was resigned or lost, and f returned nil, or an error that matches
//     context.Canceled, ErrLost or the cause of its context's end (also wrapped):
//     Run waits for the lead again.
//   - The lead was resigned or lost, and f returned another error, even
//     context.DeadlineExceeded: Run returns that error. After a loss it also matches
//     ErrLost.
//   - ctx ended: Run returns f's error, or nil.
//
// While Run waits for the lead, it returns ctx's error when ctx ends. After Close or
// Shutdown it returns an error that matches ErrClosed, unless f returned an error of its
// own. If the backend fails, Run retries after pauses that grow to 10 s, for as long as
// the failure lasts. It returns an error that a retry cannot cure
// ([BackendError].Permanent, ErrInvalid). When Run returns, or f panics, the next
// instance in the queue leads.
//
// There are two ways to stop on SIGTERM. Either ctx ends with the signal: Run waits for
// f, however long it takes. Or ctx goes on, and the program calls [Client.Shutdown] with
// a bound: then f's context ends, too.
func (e *Election) Run(ctx context.Context, f func(ctx context.Context) error) (err error) {
	switch {
	case e == nil:
		return errNotMade
	case ctx == nil:
		return errNoContext
	case e.o.valueBelow != nil:
		return noEffectError("WithValueBelow", "an Election", "for a mutex")
	case e.o.wait != 0:
		return noEffectError("WithWait", "an Election", "for a mutex: Run waits until it leads")
	case f == nil:
		return errNoFunction
	case !e.beginRun():
		return invalid(fmt.Sprintf("election of %q", e.name), "is run already", "one Run at a time")
	}
	defer func() { e.setStatus(false, cmp.Or(err, errRunEnded)) }()
	for fails := 0; ; {
		began := time.Now()
		next, err := e.runTerm(ctx, f)
		e.setStatus(true, err)
		if next == noTerm {
			return err
		}
		if fails++; next == anotherTerm && time.Since(began) > e.o.ttl {
			fails = 0
		}
		if fails > 1 {
			e.c.pause(ctx, electionPause(fails-1), nil)
		}
	}
}

// electionPause returns the time to wait after a number of failures in a row.
func electionPause(fails int) time.Duration {
	return backoff.JitterDown(backoff.Doubled(50*time.Millisecond, fails, 10*time.Second))
}

// A nextStep is the step that follows a term.
type nextStep int

const (
	noTerm      nextStep = iota // Run returns: f is done, ctx or the client has ended, or a retry cannot help
	anotherTerm                 // this instance lost or resigned the lead
	anotherTry                  // the backend did not answer the campaign
)

// runTerm campaigns, and runs f for one term. The error is the one that ended the term,
// even if another term follows.
func (e *Election) runTerm(ctx context.Context, f func(ctx context.Context) error) (nextStep, error) {
	lease, err := e.campaign(ctx)
	switch {
	case err == nil:
	case ctx.Err() == nil && errors.Is(err, ErrUnavailable) && !isPermanent(err):
		return anotherTry, err
	default:
		return noTerm, err
	}
	var fErr, cause error // f's error, and the cause of its context's end when f returned
	_, err = do(ctx, lease, nil, func(ctx context.Context) error {
		var helpers sync.WaitGroup
		defer helpers.Wait()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		// Shutdown waits for f, so f's context has to end.
		defer context.AfterFunc(e.c.closing, func() { cancel(errResigned) })()
		e.setLease(lease, cancel)
		defer e.setLease(nil, nil)
		if !e.writeValue(ctx, lease) {
			helpers.Go(func() {
				for fails := 1; lease.sleep(ctx, electionPause(fails)) == nil && !e.writeValue(ctx, lease); fails++ {
				}
			})
		}
		fErr = f(ctx)
		cause = context.Cause(ctx)
		return fErr
	})
	releaseErr := lease.Release(ctx) // the same answer as in do
	yielded := fErr == nil || errors.Is(fErr, ErrLost) || errors.Is(fErr, errResigned) || errors.Is(fErr, context.Canceled)
	switch {
	case ctx.Err() != nil || !yielded:
	case errors.Is(cause, errResigned):
		return anotherTerm, errResigned
	case errors.Is(releaseErr, ErrLost) && !errors.Is(releaseErr, ErrClosed):
		return anotherTerm, releaseErr
	}
	return noTerm, err
}

// writeValue writes the value that SetValue set while this instance waited for the lead.
// It returns false if another try may succeed. A backend that fails this one request must
// not keep an instance from leading, so runTerm repeats the write while f runs.
func (e *Election) writeValue(ctx context.Context, lease *Lease) bool {
	written := lease.claim.Value
	for {
		e.mu.Lock()
		value := e.value // SetValue may have changed it meanwhile
		e.mu.Unlock()
		if bytes.Equal(value, written) {
			return true
		}
		if err := lease.SetValue(ctx, value); err != nil {
			if ctx.Err() == nil {
				e.c.reportFailedInBackground(lease.claim.lateEvent(), "renew", 1, err)
			}
			return isPermanent(err) || errors.Is(err, ErrInvalid)
		}
		written = value
	}
}

func (e *Election) campaign(ctx context.Context) (*Lease, error) {
	l := e.lock
	e.mu.Lock()
	l.o.value = e.value
	e.mu.Unlock()
	return l.acquire(ctx, driver.Exclusive, driver.Unlimited, waiting)
}

// setLease stores the lease of this instance's term, or nil when the term ends.
func (e *Election) setLease(lease *Lease, resign context.CancelCauseFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leading, e.resign = lease, resign
}

func (e *Election) beginRun() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return false
	}
	e.running, e.endErr = true, nil
	return true
}

// setStatus stores whether Run is under way, and the error that ended its last term,
// campaign or Run.
func (e *Election) setStatus(running bool, endErr error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running, e.endErr = running, endErr
}

var (
	errNotRun      = errors.New("pawl: this instance does not campaign yet: Run was not called")
	errRunEnded    = errors.New("pawl: this instance does not campaign any more: Run is over")
	errNoAnswerYet = errors.New("pawl: this instance waits for the lead, and the backend has not answered yet")
)

// IsLeader reports whether this instance leads. It does not ask the backend.
func (e *Election) IsLeader() bool { return e.Status() == nil }

// Status returns nil while this instance leads, and otherwise why it does not. It does
// not ask the backend. While Run waits for the lead, the error is the last answer: it
// matches ErrHeld if another instance leads, or ErrUnavailable if the backend fails; then
// maybe no instance leads. Between two terms, it is the error that ended the last term.
// After Run, it is Run's error, or says that Run is over.
func (e *Election) Status() error {
	if !e.isMade() {
		return errNotMade
	}
	e.mu.Lock()
	leading, running, endErr := e.leading, e.running, e.endErr
	e.mu.Unlock()
	if leading != nil {
		return leading.Err() // even if the process was paused, and its context has not ended yet
	}
	refused := e.c.queues.CheckTry(&driver.Claim{Name: e.name, Weight: driver.Exclusive})
	held, isHeld := errors.AsType[*driver.HeldError](refused)
	switch {
	case running && refused != nil && !(isHeld && held.Holders == 0):
		return refused
	case endErr != nil:
		return endErr
	case running:
		return errNoAnswerYet
	}
	return errNotRun
}

// Resign ends the lead of this instance for now. The context of its function ends, with a
// cause that reads "pawl: resigned". The client renews the lease until the function has
// returned; then the next instance in the queue leads, and Run waits for the lead again,
// behind the others. Only Close, Shutdown's ctx, WithMaxHold and WithHealth bound a
// function that does not return. Resign does not wait for the function, and reports
// whether this instance led.
func (e *Election) Resign() bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leading == nil {
		return false
	}
	e.resign(errResigned)
	return true
}

// SetValue changes the value that the leader publishes, at most 1 KB: now, if this
// instance leads, and for its later terms. The error is the error of [Lease.SetValue], or
// nil if this instance does not lead. If SetValue was called while this instance waited,
// Run writes the value when the term begins, before it calls f. If the backend fails
// then, Run calls f all the same and retries the write.
func (e *Election) SetValue(ctx context.Context, value []byte) error {
	if !e.isMade() {
		return errNotMade
	}
	if err := driver.ValidateValue(value); err != nil {
		return err
	}
	e.mu.Lock()
	e.value = cloneValue(value)
	lease := e.leading
	e.mu.Unlock()
	if lease == nil {
		return nil
	}
	return lease.SetValue(ctx, value)
}

// Leader asks the backend for the leader. If no instance leads, it returns the zero
// Leader. It returns the errors of [Client.Inspect].
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	if e == nil {
		return Leader{}, errNotMade
	}
	entry, err := e.client.Inspect(ctx, e.shortName())
	return leaderOf(&entry), err
}

// Watch yields the leader: at once, and each time that the leader or its value has
// changed. The zero Leader means that no instance leads. Watch ends as [Client.Watch]
// does. In an outage it yields the error once, with the zero Leader, and goes on.
func (e *Election) Watch(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if e == nil {
			yield(Leader{}, errNotMade)
			return
		}
		var last Leader
		first := true
		for entry, err := range e.client.Watch(ctx, e.shortName()) {
			if err != nil {
				if first = true; !yield(Leader{}, err) {
					return
				}
				continue
			}
			now := leaderOf(&entry)
			if !first && now.Term == last.Term && string(now.Value) == string(last.Value) {
				continue
			}
			first, last = false, now
			if !yield(now, nil) {
				return
			}
		}
	}
}

func leaderOf(e *Entry) (l Leader) {
	for _, h := range e.Holders {
		if h.Permits != driver.Exclusive || h.Released {
			continue
		}
		l = Leader{Term: h.Fence, Owner: h.Owner, Since: h.Since}
		if e.ValueFence == h.Fence && len(e.Value) > 0 {
			l.Value = e.Value
		}
	}
	return l
}
