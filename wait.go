package pawl

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/clock"
	"github.com/pawl-go/pawl/internal/lazyctx"
	"github.com/pawl-go/pawl/internal/trust"
)

// attempts is a claim that asks the backend until it is granted or gives up.
type attempts struct {
	c      *core
	ctx    context.Context
	claim  *claim
	w      *waiter // nil for a try
	margin time.Duration

	held   *driver.HeldError // the last answer "held", nil before the first
	placed clock.Reading     // when the attempt was sent that was answered so
	polls  int               // how many looks in a row found nothing new, where there is no push

	failing time.Time // since when the backend fails, if fails > 0
	fails   int
	failure error

	asking  bool // the driver, or the Observer, is at it
	granted bool
}

// leave takes a claim that was not granted out of the books of this process, even if the
// driver or the Observer panics: a caller that recovers must not leave a queue behind in
// which no waiter moves, nor a claim in the backend.
func (a *attempts) leave() {
	if a.granted {
		return
	}
	a.c.inboxes.Remove(a.claim.Token, &a.claim.inbox)
	if a.w != nil {
		a.w.Leave(a.c.now().Mono)
	}
	if a.asking {
		a.c.undo(a.claim)
	}
}

// run asks until there is an answer that ends it. Whenever it ends without a grant, and
// one might be on its way, the claim is undone.
//
// sent is a reading of now. The one that comes with a hold is of the instant in which it
// was found to have time left.
func (a *attempts) run(sent clock.Reading) (*hold, clock.Reading, error) {
	c, cl := a.c, a.claim
	c.inboxes.Add(cl.Token, &cl.inbox) // before asking: signals may come before the reply
	for first := true; ; first = false {
		if !first {
			sent = c.now()
		}
		if !first || a.w != nil && a.w.Turn() != nil { // else it has nobody behind it yet
			cl.Fences = a.fences()
		}
		grant, err := a.ask(sent)
		if err == nil {
			if ended(a.ctx) != nil {
				break // nobody waits for it any more
			}
			now, tm := c.now(), trust.NewTerm(sent, grant.TTL, a.margin)
			if tm.Fresh(now) {
				return newHold(c, cl, sent, tm, grant.Fence, grant.Fences), now, nil
			}
			err = errTooLate // the term was used up by the reply; asking again makes it whole
		}
		if err := a.judge(sent, err); err != nil {
			return nil, clock.Reading{}, err
		}
		h, now, err := a.wait()
		if err != nil || h != nil && ended(a.ctx) == nil {
			return h, now, err
		}
		if h != nil {
			break
		}
	}
	c.undo(cl)
	return nil, clock.Reading{}, gaveUp(a.ctx, cl.Name, a.why())
}

// An exclusive claim reserves fences for several rounds of a short queue: when they are
// used up, the lease goes to the backend and the head of the waiters queues there, which
// costs two whole scripts on Redis.
const (
	rounds   = 4
	mostMore = 256
	mostRun  = 1024 // who is counted stands in a list, whose mutex is held meanwhile
)

// fences is how many an exclusive claim should reserve: one for itself, and one for each
// waiter here that its lease can be passed to; or some for each, if those are all,
// because they may be back before the handoff closes. For a long queue it is no more than
// one each: fences that are reserved and not used run ahead of the clock, by a
// microsecond each.
func (a *attempts) fences() int {
	cl := a.claim
	if a.w == nil || a.c.settings.LocalHandoff < 0 || !cl.exclusive() || !cl.alike(cl) {
		return 1
	}
	behind, all := a.w.Alike(mostRun-1, cl.alike)
	if !all {
		return 1 + behind
	}
	return 1 + max(behind, min(rounds*behind, mostMore))
}

var errTooLate = errors.New("the answer took longer than the lease lasts")

// ask makes one attempt, bounded in time. If it is not answered it may take effect until
// then.
//
// A forced claim has the same end however often it is asked for: it is reported as failed
// when that has passed.
func (a *attempts) ask(sent clock.Reading) (driver.Grant, error) {
	cl := a.claim
	ctx := a.c.attempt(a.ctx, &cl.request, cl.TTL, sent.Mono)
	if cl.Force && cl.stray > 0 {
		ctx = lazyctx.WithDeadline(a.ctx, a.c.born.Add(cl.stray))
	}
	defer ctx.Cancel()
	before, end := cl.stray, ctx.Ends()
	cl.stray, a.asking = max(before, end.Sub(a.c.born)), true
	grant, err := a.c.driver.Acquire(ctx, cl.Claim)
	a.asking = false
	if answered(err) {
		cl.stray = before
		a.c.renewals.Alive(sent.Mono)
	}
	return grant, err
}

// answered reports whether an Acquire that ended so is known to do nothing more.
func answered(err error) bool {
	return err == nil || errors.Is(err, ErrHeld) || errors.Is(err, ErrValue) || errors.Is(err, ErrInvalid)
}

// tell tells the Observer, who may panic, or end the goroutine, while the backend knows
// of the claim.
func (a *attempts) tell(f func(o *Observer)) {
	if a.c.observer == nil {
		return
	}
	a.asking = true
	f(a.c.observer)
	a.asking = false
}

// judge decides what an attempt that was not granted means: nil to go on, or the error to
// end with.
func (a *attempts) judge(sent clock.Reading, err error) error {
	c, cl := a.c, a.claim
	if held, ok := errors.AsType[*driver.HeldError](err); ok {
		if a.w == nil {
			return held
		}
		moved := a.held == nil || a.held.Position != held.Position
		a.held, a.placed, a.fails = held, sent, 0
		a.w.Told(held, c.byOthers(held))
		if moved {
			a.polls = 0
			a.tell(func(o *Observer) { o.queued(cl, held) })
		}
		return nil
	}

	if errors.Is(err, ErrInvalid) {
		return err // refused before anything was sent
	}
	if refused, ok := errors.AsType[*driver.ValueError](err); ok {
		return a.outdone(refused)
	}
	if errors.Is(err, ErrClosed) {
		return err
	}
	// From here on the outcome is unknown: the claim may be granted, or queued.
	if ended(a.ctx) != nil {
		c.undo(cl)
		return gaveUp(a.ctx, cl.Name, a.why())
	}
	err = unavailable(c.backend, "acquire", cl.Name, err)
	a.tell(func(o *Observer) { o.failed(cl.event(cl.ctx), "acquire", 1, err) })
	if cl.Force && !permanent(err) {
		a.fails++
		a.failure = err
		return nil // asked again, until its end
	}
	if a.w == nil {
		c.undo(cl)
		return err
	}
	since := a.w.Failed(sent.Mono, err)
	if a.fails == 0 {
		a.failing = since
	}
	a.fails++
	a.failure = err
	if permanent(err) {
		c.undo(cl)
		return err
	}
	if now := c.now().Mono; now.Sub(a.failing) >= c.settings.RetryFor {
		a.w.FailOthers(c.settings.RetryFor, err, now)
		c.undo(cl)
		return err
	}
	return nil
}

// byOthers reports whether another process holds the name.
func (c *core) byOthers(held *driver.HeldError) bool {
	me, holder := &c.settings.owner, &held.Holder.Owner
	return held.Holders > 0 && (holder.Client != me.Client || holder.Host != me.Host || holder.PID != me.PID)
}

// outdone is the end of a claim that the name's value refuses. It has no place in the
// queue any more; but an attempt that was not answered may come yet, when the value is
// another one. Or it came, was granted, and its lease has ended since: then the value is
// its own, and nobody knows that the claim was refused.
func (a *attempts) outdone(refused *driver.ValueError) error {
	c, cl := a.c, a.claim
	if cl.stray == 0 {
		return refused
	}
	c.undo(cl)
	if cl.Value != nil && bytes.Equal(refused.Value, cl.Value) {
		return unavailable(c.backend, "acquire", cl.Name, &ownValueError{a.failure})
	}
	return refused
}

// ownValueError says that a value may have been written by the claim that it refuses.
type ownValueError struct{ failure error }

func (e *ownValueError) Unwrap() error { return e.failure }

func (e *ownValueError) Error() string {
	s := "the value was written, and it is not known by whom: an attempt of this claim was not answered"
	if e.failure != nil {
		s += ": " + bare(e.failure)
	}
	return s
}

// why is what stood in the way last.
func (a *attempts) why() error {
	switch {
	case a.fails > 0:
		return a.failure
	case a.held != nil:
		return a.held
	}
	return nil
}

// wait waits for what makes asking again worth while: a signal, the moment when things
// change by themselves, the keep-alive of our place, or the end of a pause after a
// failure. A signal that says "granted" is the grant itself.
func (a *attempts) wait() (*hold, clock.Reading, error) {
	c, cl := a.c, a.claim
	pause, last := a.pause(), false
	if cl.Force && a.fails > 0 {
		left := time.Until(c.born.Add(cl.stray))
		pause, last = min(pause, left), left <= pause
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		if last {
			c.undo(cl)
			return nil, clock.Reading{}, a.failure
		}
		return nil, clock.Reading{}, nil
	case <-c.inboxes.Arrival(cl.Token, &cl.inbox):
		now := c.now()
		return a.signaled(c.inboxes.Take(cl.Token, &cl.inbox), now), now, nil
	case <-c.closing:
		c.undo(cl)
		return nil, clock.Reading{}, ErrClosed
	case <-a.ctx.Done():
		c.undo(cl)
		return nil, clock.Reading{}, gaveUp(a.ctx, cl.Name, a.why())
	}
}

// signaled makes a hold of a signal that says "granted".
//
// The grant was made after the last attempt that was answered "held" was handled, so the
// lease lasts the QueueTTL from the sending of that attempt, at the least. If not enough
// of that is left, the answer is nil: asking again makes it a full TTL. So it is when the
// signal is an old one: of a grant that came and went while we were paused, before we
// queued again; or of a quorum that said so before that attempt was made, and has nodes
// that did not hear of it. The fence tells.
func (a *attempts) signaled(s driver.Signal, now clock.Reading) *hold {
	if s.Kind != driver.SignalGranted || a.held == nil || s.Fence <= a.held.Fence {
		return nil
	}
	ttl := a.claim.QueueTTL
	tm := trust.NewTerm(a.placed, ttl, a.claim.marginOf(ttl))
	if !tm.Fresh(now) {
		return nil
	}
	return newHold(a.c, a.claim, now, tm, s.Fence, s.Fences)
}

// pause is how long to wait before asking again, if no signal comes.
func (a *attempts) pause() time.Duration {
	c, cl := a.c, a.claim
	if a.fails > 0 {
		return backoff.Early(backoff.Doubled(10*time.Millisecond, a.fails, time.Second))
	}
	third := cl.QueueTTL / 3
	d := third - backoff.Below(third/8) - c.now().Since(a.placed)
	// Only the head of the queue can be granted when a holder expires. Those behind it
	// would all come at once, for nothing; if the head is dead, they find it at their
	// next keep-alive.
	if a.held.Position <= 1 && a.held.RetryAfter > 0 {
		d = min(d, a.held.RetryAfter)
	}
	if !c.pushed() {
		d = min(d, a.poll())
	}
	return max(d, time.Millisecond)
}

// poll is the pause where nothing is pushed: from 5 ms, growing by half each time to a
// quarter of a second, with jitter so that several processes do not look at the same
// instants.
func (a *attempts) poll() time.Duration {
	d := backoff.Halfway(5*time.Millisecond, a.polls, 250*time.Millisecond)
	a.polls++
	return backoff.Early(d)
}
