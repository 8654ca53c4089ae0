package pawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// Election makes one of many instances the leader. [Client.Election] makes one; each
// instance calls [Election.Run].
type Election struct {
	lock
	client *Client

	mu      sync.Mutex // protects all below
	running bool       // Run is called
	leading *Lease     // the term of this instance, or nil
	resign  context.CancelCauseFunc
	value   []byte // what is written with the next term
	why     error  // what ended the last term, campaign, or Run; see Err
}

// Election returns the election of a name. It is a mutex of that name: see [Client.Mutex]
// for names. Options of use here: WithTTL, for a leader that dies is followed after its
// TTL; WithValue, for what the leader says of itself, such as its address; WithHealth, so
// that a leader that is stuck loses the lead; WithMaxHold, so that the lead goes round.
// Run refuses WithAbove: what a leader says of itself is no condition for the next one.
func (c *Client) Election(name string, options ...LockOption) *Election {
	e := &Election{lock: c.lock(name, options), client: c}
	e.value = orEmpty(e.o.value)
	return e
}

func (e *Election) made() bool { return e != nil && e.client.made() }

// Leader is who leads. The zero Leader is nobody.
type Leader struct {
	// Term is the fence of the leader's lease, so it rises with each new leader. 0 means
	// that nobody leads.
	Term  uint64
	Owner Owner     // who it is
	Value []byte    // what it says of itself, see WithValue; nil if nothing
	Since time.Time // on the backend's clock
}

// errResigned is the cause of the end of an elected function's context.
var errResigned = errors.New("pawl: resigned")

// Run waits until this instance leads, first come, first served among processes, and
// runs f. f's context is ctx, and ends when the lead is lost, or resigned, before another
// instance can get it; [FenceOf] finds the term in it. f has to return then: Run
// waits for it and does not lead again before. So of the functions of all instances no
// two run at once, but for one that goes on after its context has ended, or that was
// stopped with its whole process and runs for a moment before the context ends: guard
// what it writes with the term.
//
// When the lead was lost or resigned, and f has returned nil or its context's error, Run
// waits for the lead again. It returns what f returns otherwise: f is done, or ctx has
// ended. While it waits it returns ctx's error when ctx ends, and ErrClosed when the
// client is closed, or shut down. A backend that is down is asked again after pauses that
// grow to 10 s, for as long as it is down; but an error that asking again will not mend
// is returned. When Run returns, or f panics, the lead goes to the next instance in the
// queue.
func (e *Election) Run(ctx context.Context, f func(ctx context.Context) error) (err error) {
	if e == nil {
		return errNotMade
	}
	if ctx == nil {
		return errNoContext
	}
	if e.o.above != nil {
		return pointless("WithAbove", "an Election", "for a mutex")
	}
	if e.o.wait != 0 {
		return pointless("WithWait", "an Election", "for a mutex: Run waits until it leads")
	}
	if f == nil {
		return errNoFunction
	}
	if !e.begin() {
		return &InvalidError{What: fmt.Sprintf("election of %q", e.name), Problem: "is run already", Allowed: "one Run at a time"}
	}
	defer func() { e.end(err) }()
	for fails := 0; ; {
		began := time.Now()
		next, err := e.term(ctx, f)
		e.note(err)
		if next == noTerm {
			return err
		}
		if fails++; next == anotherTerm && time.Since(began) > e.o.ttl {
			fails = 0
		}
		if fails > 1 {
			timer := time.NewTimer(electionPause(fails - 1))
			select {
			case <-timer.C:
			case <-ctx.Done():
			case <-e.c.closing:
			}
			timer.Stop()
		}
	}
}

// electionPause is how long to wait after so many failures in a row.
func electionPause(fails int) time.Duration {
	return backoff.Early(backoff.Doubled(50*time.Millisecond, fails, 10*time.Second))
}

// A next is what follows a term.
type next int

const (
	noTerm      next = iota // Run returns: f is done, or ctx or the client has ended
	anotherTerm             // the lead was lost or resigned
	anotherTry              // the backend did not answer the campaign
)

// term is one time of leading. The error is what ended it, also if another follows.
func (e *Election) term(ctx context.Context, f func(ctx context.Context) error) (next, error) {
	lease, err := e.campaign(ctx)
	switch {
	case err == nil:
	case ctx.Err() == nil && errors.Is(err, ErrUnavailable) && !permanent(err):
		return anotherTry, err
	default:
		return noTerm, err
	}
	var own, cause error // what f returned, and what had ended its context by then
	_, err = do(ctx, lease, nil, func(ctx context.Context) error {
		var beside sync.WaitGroup
		defer beside.Wait()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		beside.Go(func() { // Shutdown waits for functions: this one makes room for the next leader
			select {
			case <-e.c.closing:
				cancel(errResigned)
			case <-ctx.Done():
			}
		})
		e.lead(lease, cancel)
		defer e.lead(nil, nil)
		if !e.write(ctx, lease) {
			beside.Go(func() {
				for fails := 1; lease.sleep(ctx, electionPause(fails)) == nil && !e.write(ctx, lease); fails++ {
				}
			})
		}
		own = f(ctx)
		cause = context.Cause(ctx)
		return own
	})
	lost := lease.Release(ctx) // as do was told
	yields := own == nil || errors.Is(own, ErrLost) || errors.Is(own, errResigned) || errors.Is(own, context.Canceled)
	switch {
	case ctx.Err() != nil || !yields:
	case errors.Is(cause, errResigned):
		return anotherTerm, errResigned
	case errors.Is(lost, ErrLost) && !errors.Is(lost, ErrClosed):
		return anotherTerm, lost
	}
	return noTerm, err
}

// write has the name keep the value that was set while this instance waited for the lead,
// and reports whether it does, or never will. Nobody is kept from leading by a backend
// that fails this one request, so term repeats it beside f.
func (e *Election) write(ctx context.Context, lease *Lease) bool {
	kept := lease.claim.Value
	for {
		e.mu.Lock()
		value := e.value // SetValue may have changed it since
		e.mu.Unlock()
		if bytes.Equal(value, kept) {
			return true
		}
		if err := lease.SetValue(ctx, value); err != nil {
			if ctx.Err() == nil {
				e.c.failedAside(lease.claim.later(), "renew", 1, err)
			}
			return permanent(err) || errors.Is(err, ErrInvalid)
		}
		kept = value
	}
}

func (e *Election) campaign(ctx context.Context) (*Lease, error) {
	l := e.lock
	e.mu.Lock()
	l.o.value = e.value
	e.mu.Unlock()
	return l.acquire(ctx, driver.Exclusive, driver.Unlimited, waiting)
}

// lead notes that this instance leads, or nil that it does not.
func (e *Election) lead(lease *Lease, resign context.CancelCauseFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leading, e.resign = lease, resign
}

func (e *Election) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return false
	}
	e.running, e.why = true, nil
	return true
}

func (e *Election) end(err error) {
	if err == nil {
		err = errRunEnded
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running, e.why = false, err
}

// note keeps what ended a term or a campaign, for Err.
func (e *Election) note(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.why = err
}

var (
	errNotRun   = errors.New("pawl: this instance does not campaign yet: Run was not called")
	errRunEnded = errors.New("pawl: this instance does not campaign any more: Run is over")
	errUnheard  = errors.New("pawl: this instance asks for the lead, and has not heard who has it")
)

// Err says why this instance does not lead, as far as it is known without asking the
// backend; it is nil while it does. While it waits for the lead that is what it heard
// last: an error that matches ErrHeld if others lead, or one that matches ErrUnavailable
// if the backend fails, and then nobody may lead. While it does neither, it is what ended
// its last term, and when Run has returned, what that returned.
func (e *Election) Err() error {
	if !e.made() {
		return errNotMade
	}
	e.mu.Lock()
	leading, running, why := e.leading, e.running, e.why
	e.mu.Unlock()
	if leading != nil {
		return leading.Err() // also when the process was paused, and has not heard of it
	}
	heard := e.c.queues.Tried(&driver.Claim{Name: e.name, Weight: driver.Exclusive})
	held, isHeld := errors.AsType[*driver.HeldError](heard)
	switch {
	case running && heard != nil && !(isHeld && held.Local):
		return heard
	case why != nil:
		return why
	case running:
		return errUnheard
	}
	return errNotRun
}

// Resign ends the lead of this instance: the context of its function ends, and when the
// function has returned, the next instance in the queue leads. Run then waits for the
// lead again, behind the others. It reports whether this instance led.
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

// SetValue changes what the leader says of itself: now, if this instance leads, and for
// its later terms. The error is that of [Lease.SetValue], for now. A value that was set
// while this instance waited is written when its term begins, before its function runs;
// if the backend fails then, the function runs all the same, and Run writes the value
// when it can.
func (e *Election) SetValue(ctx context.Context, value []byte) error {
	if !e.made() {
		return errNotMade
	}
	if err := driver.ValidateValue(value); err != nil {
		return err
	}
	e.mu.Lock()
	e.value = append([]byte{}, value...)
	lease := e.leading
	e.mu.Unlock()
	if lease == nil {
		return nil
	}
	return lease.SetValue(ctx, value)
}

// Leader asks the backend who leads. If nobody does, that is the zero Leader.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	if e == nil {
		return Leader{}, errNotMade
	}
	entry, err := e.client.Inspect(ctx, e.inner())
	return leader(&entry), err
}

// Watch yields who leads: at once, and each time that the leader, or what it says of
// itself, has changed. The zero Leader means that nobody leads. It ends as [Client.Watch]
// does, and goes on after an outage as that does: it yields the error once, with the zero
// Leader, as nobody knows who leads.
func (e *Election) Watch(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if e == nil {
			yield(Leader{}, errNotMade)
			return
		}
		var last Leader
		first := true
		for entry, err := range e.client.Watch(ctx, e.inner()) {
			if err != nil {
				if first = true; !yield(Leader{}, err) {
					return
				}
				continue
			}
			now := leader(&entry)
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

// leader finds who leads in what the backend knows of the name.
func leader(e *Entry) (l Leader) {
	for _, h := range e.Holders {
		if h.Weight != driver.Exclusive || h.Released {
			continue
		}
		l = Leader{Term: h.Fence, Owner: h.Owner, Since: h.Since}
		if e.ValueFence == h.Fence && len(e.Value) > 0 {
			l.Value = e.Value
		}
	}
	return l
}
