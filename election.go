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
func (c *Client) Election(name string, options ...Option) *Election {
	e := &Election{lock: c.lock(name, options)}
	e.value = orEmpty(e.o.value)
	return e
}

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

// Run waits until this instance leads, first come, first served, and runs f. f's context
// is ctx, and ends when the lead is lost, or resigned, before another instance can get
// it; [FenceFromContext] finds the term in it. f has to return then: Run waits for it and
// does not lead again before. So of the functions of all instances no two run at once,
// but for one that goes on after its context has ended, or that was stopped with its
// whole process and runs for a moment before the context ends: guard what it writes with
// the term.
//
// When the lead was lost or resigned, and f has returned nil or its context's error, Run
// waits for the lead again. It returns what f returns otherwise: f is done, or ctx has
// ended. While it waits it returns ctx's error when ctx ends, and ErrClosed when the
// client is closed, or shut down. A backend that is down is asked again after pauses that
// grow to 10 s, for as long as it is down; but an error that asking again will not mend
// is returned. When Run returns, or f panics, the lead goes to the next instance in the
// queue.
func (e *Election) Run(ctx context.Context, f func(ctx context.Context) error) (err error) {
	if ctx == nil {
		return &InvalidError{What: "ctx", Problem: "is nil", Allowed: "a context"}
	}
	if e.o.above != nil {
		return pointless("WithAbove", "an Election", "for a mutex")
	}
	if err := e.o.forOnce("an Election"); err != nil {
		return err
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
		err := e.term(ctx, f)
		e.note(err)
		switch {
		case errors.Is(err, errAgain):
			if fails++; time.Since(began) > e.o.ttl {
				fails = 0
			}
		case errors.Is(err, errNoTerm) && ctx.Err() == nil && errors.Is(err, ErrUnavailable) && !permanent(err):
			fails++
		default:
			if n, ok := errors.AsType[*noTermError](err); ok {
				return n.err
			}
			return err
		}
		if fails > 1 {
			timer := time.NewTimer(backoff.Early(backoff.Doubled(50*time.Millisecond, fails-1, 10*time.Second)))
			select {
			case <-timer.C:
			case <-ctx.Done():
			case <-e.c.closing:
			}
			timer.Stop()
		}
	}
}

var (
	errAgain  = errors.New("pawl: the lead was lost")
	errNoTerm = errors.New("pawl: no lead")
)

// againError is why a term ended after which another follows.
type againError struct{ err error }

func (e *againError) Error() string        { return e.err.Error() }
func (e *againError) Is(target error) bool { return target == errAgain }
func (e *againError) Unwrap() error        { return e.err }

// noTermError is why the lead was not got.
type noTermError struct{ err error }

func (e *noTermError) Error() string        { return e.err.Error() }
func (e *noTermError) Is(target error) bool { return target == errNoTerm }
func (e *noTermError) Unwrap() error        { return e.err }

// term is one time of leading: errAgain if another shall follow.
func (e *Election) term(ctx context.Context, f func(ctx context.Context) error) error {
	lease, err := e.campaign(ctx)
	if err != nil {
		return &noTermError{err}
	}
	var own error
	resigned, returned := false, false
	_, err = do(ctx, lease, nil, func(ctx context.Context) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() { // Shutdown waits for functions: this one makes room for the next leader
			select {
			case <-e.c.closing:
				cancel(errResigned)
			case <-ctx.Done():
			}
		}()
		value, changed := e.lead(lease, cancel)
		defer e.lead(nil, nil)
		if changed { // while it waited
			if err := lease.SetValue(ctx, value); err != nil && ctx.Err() == nil {
				own, returned = err, true
				return nil
			}
		}
		own = f(ctx)
		resigned, returned = errors.Is(context.Cause(ctx), errResigned), true
		return nil
	})
	ended := own == nil || errors.Is(own, ErrLost) || errors.Is(own, errResigned) || errors.Is(own, context.Canceled)
	switch {
	case ctx.Err() == nil && ended && resigned:
		return &againError{errResigned}
	case ctx.Err() == nil && ended && errors.Is(err, ErrLost) && !errors.Is(err, ErrClosed):
		return &againError{err}
	case !returned: // it was lost, or the client closed, before f began
		return &noTermError{err}
	case own != nil && err != nil:
		return errors.Join(own, err)
	case own != nil:
		return own
	}
	return err
}

// campaign waits for the lead.
func (e *Election) campaign(ctx context.Context) (*Lease, error) {
	l := e.lock
	e.mu.Lock()
	l.o.value = e.value
	e.mu.Unlock()
	return l.acquire(ctx, driver.Exclusive, driver.Unlimited, waiting)
}

// lead notes that this instance leads, or nil that it does not. The value is another one
// now if it has changed since the lock was claimed.
func (e *Election) lead(lease *Lease, resign context.CancelCauseFunc) (value []byte, changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leading, e.resign = lease, resign
	return e.value, lease != nil && !bytes.Equal(e.value, lease.claim.Value)
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
	if inner := errors.Unwrap(err); errors.Is(err, errAgain) || errors.Is(err, errNoTerm) {
		err = inner
	}
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
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leading == nil {
		return false
	}
	e.resign(errResigned)
	return true
}

// SetValue changes what the leader says of itself: now, if this instance leads, and for
// its later terms. The error is that of [Lease.SetValue], for now.
func (e *Election) SetValue(ctx context.Context, value []byte) error {
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
	entry, err := e.c.Inspect(ctx, e.name)
	return leader(&entry), err
}

// Watch yields who leads: at once, and each time that the leader, or what it says of
// itself, has changed. The zero Leader means that nobody leads. It ends as [Client.Watch]
// does.
func (e *Election) Watch(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		var last Leader
		first := true
		for entry, err := range e.c.Watch(ctx, e.name) {
			if err != nil {
				yield(Leader{}, err)
				return
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
