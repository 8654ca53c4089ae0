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

// attempts is the state of a claim that asks the backend until it is granted or gives up.
type attempts struct {
	c      *core
	ctx    context.Context
	claim  *claim
	waiter *waiter // nil unless the claim waits
	margin time.Duration

	queueTTL   time.Duration     // the TTL of a place near the head, see placeTTL
	held       *driver.HeldError // the last answer "held", nil before the first
	placedAt   clock.Reading     // when the attempt that got this answer was sent
	placeLasts time.Duration     // how long the place lasts from then on
	polls      int               // polls in a row that found nothing new, if the backend does not push

	failingSince time.Time // since when the backend has failed, if fails > 0
	fails        int
	failure      error

	calling bool // a call of the driver or the Observer runs: if it panics, dropUngranted releases the claim
	granted bool
}

// dropUngranted removes a claim that was not granted from the lists of this process. It
// runs even if the driver or the Observer panics: otherwise a caller that recovers would
// leave a blocked local queue and a claim in the backend.
func (a *attempts) dropUngranted() {
	if a.granted {
		return
	}
	a.c.inboxes.Remove(a.claim.Token, &a.claim.inbox)
	if a.waiter != nil {
		a.waiter.Leave(a.c.now().Mono)
	}
	if a.calling {
		a.c.releaseUnknown(a.claim)
	}
}

// run sends attempts until an answer ends the claim. If run ends without a grant, and the
// backend may still grant an attempt, run releases the claim.
//
// sent is the present reading of the clock. If run returns a hold, it also returns the
// later reading at which it checked that the hold has enough time left.
func (a *attempts) run(sent clock.Reading) (*hold, clock.Reading, error) {
	c, cl := a.c, a.claim
	c.inboxes.Add(cl.Token, &cl.inbox) // before asking: signals may come before the reply
	for first := true; ; first = false {
		if !first {
			sent = c.now()
		}
		if !first || a.waiter != nil && a.waiter.Turn() != nil { // no waiter is behind the first waiter's first attempt
			cl.Fences = a.fences()
		}
		grant, err := a.ask(sent)
		if err == nil {
			if ctxErr(a.ctx) != nil {
				break // no caller waits for the lease any more
			}
			now, term := c.now(), trust.NewTerm(sent, grant.TTL, a.margin)
			if term.Fresh(now) {
				return newHold(c, cl, sent, term, grant.Fence, grant.Fences), now, nil
			}
			err = errTooLate // the reply used up the term; the next attempt gets a whole one
		}
		if err := a.handleAnswer(sent, err); err != nil {
			return nil, clock.Reading{}, err
		}
		h, now, err := a.wait()
		if err != nil || h != nil && ctxErr(a.ctx) == nil {
			return h, now, err
		}
		if h != nil {
			break
		}
	}
	c.releaseUnknown(cl)
	return nil, clock.Reading{}, gaveUp(a.ctx, cl.Name, a.lastErr())
}

// An exclusive claim reserves fences for several rounds of a short local queue. When the
// fences are used up, the process releases the lease, and its first waiter queues in the
// backend. On Redis, that costs two script calls.
const (
	fenceRounds       = 4
	maxSpareFences    = 256
	maxCountedWaiters = 1024 // the most waiters to count, because counting holds the queue's mutex
)

// fences returns the number of fences that an exclusive claim should reserve: one for
// itself, and one for each waiter here to which its lease can be passed. Each unused
// fence moves the name's fences one microsecond further ahead of the clock. But a waiter
// may lock again within the hand-off window. So the claim reserves several for each
// waiter if the local queue is short, all its claims can share a lease, and no other
// process is known to wait.
func (a *attempts) fences() int {
	cl := a.claim
	if a.waiter == nil || a.c.settings.HandoffWindow < 0 || !cl.exclusive() || !cl.canShareLease(cl) {
		return 1
	}
	behind, all := a.waiter.CountPassable(maxCountedWaiters-1, cl.canShareLease)
	if !all {
		return 1 + behind
	}
	return 1 + max(behind, min(fenceRounds*behind, maxSpareFences))
}

// A place lasts one QueueTTL, and one more for every longQueue waiters ahead of it. It
// lasts at most maxPlaceTTLs QueueTTLs, and at most the TTL of the lease.
const (
	longQueue    = 64
	maxPlaceTTLs = 4
)

// placeTTL returns the TTL of a place at this position. If all waiters of a long queue
// renewed their places equally often, some backends would have time for nothing else. So
// a waiter far from the head renews its place less often.
func (a *attempts) placeTTL(position int) time.Duration {
	times := min(1+(position-1)/longQueue, maxPlaceTTLs)
	return max(a.queueTTL, min(time.Duration(times)*a.queueTTL, a.claim.TTL))
}

var errTooLate = errors.New("the answer took longer than the lease lasts")

// ask makes one attempt, bounded in time. An unanswered attempt may take effect until
// that bound.
//
// All attempts of a forced claim share one bound. After it, the claim has failed.
func (a *attempts) ask(sent clock.Reading) (driver.Grant, error) {
	cl := a.claim
	ctx := a.c.settings.requestContext(a.ctx, &cl.request, cl.TTL, sent.Mono)
	if cl.Force && cl.lateAttemptEnd > 0 {
		ctx = lazyctx.WithDeadline(a.ctx, a.c.epoch.Add(cl.lateAttemptEnd))
	}
	defer ctx.Cancel()
	before, end := cl.lateAttemptEnd, ctx.Ends()
	cl.lateAttemptEnd, a.calling = max(before, end.Sub(a.c.epoch)), true
	grant, err := a.c.driver.Acquire(ctx, cl.Claim)
	a.calling = false
	if isAnswer(err) {
		cl.lateAttemptEnd = before
		a.c.renewals.Alive(sent.Mono)
	}
	return grant, err
}

// isAnswer reports whether an Acquire that returned err can have no further effect.
func isAnswer(err error) bool {
	return err == nil || errors.Is(err, ErrHeld) || errors.Is(err, ErrValueNotBelow) || errors.Is(err, ErrInvalid)
}

// callObserver calls the Observer. If the Observer panics, or ends the goroutine, calling
// is still set, so dropUngranted releases the claim in the backend.
func (a *attempts) callObserver(f func(o *Observer)) {
	if a.c.observer == nil {
		return
	}
	a.calling = true
	f(a.c.observer)
	a.calling = false
}

// handleAnswer decides whether the claim goes on after an attempt that was not granted:
// it returns nil, or the error that ends the claim.
func (a *attempts) handleAnswer(sent clock.Reading, err error) error {
	c, cl := a.c, a.claim
	if held, ok := errors.AsType[*driver.HeldError](err); ok {
		if a.waiter == nil {
			return held
		}
		moved := a.held == nil || a.held.Position != held.Position
		a.held, a.placedAt, a.placeLasts, a.fails = held, sent, cl.QueueTTL, 0
		cl.QueueTTL = a.placeTTL(held.Position)
		a.waiter.RecordHeld(held, c.heldByOthers(held))
		if moved {
			a.polls = 0
			a.callObserver(func(o *Observer) { o.reportQueued(cl, held) })
		}
		return nil
	}

	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrClosed) {
		return err // ErrInvalid: refused before anything was sent
	}
	if refused, ok := errors.AsType[*driver.ValueNotBelowError](err); ok {
		return a.endForValue(refused)
	}
	// From here on the outcome is unknown: the claim may be granted, or queued.
	if ctxErr(a.ctx) != nil {
		c.releaseUnknown(cl)
		return gaveUp(a.ctx, cl.Name, a.lastErr())
	}
	err = unavailable(c.backend, "acquire", cl.Name, err)
	a.callObserver(func(o *Observer) { o.reportFailed(cl.event(cl.ctx), "acquire", 1, err) })
	if cl.Force && !isPermanent(err) {
		a.fails++
		a.failure = err
		return nil // the claim asks again, until its bound
	}
	if a.waiter == nil {
		c.releaseUnknown(cl)
		return err
	}
	since := a.waiter.RecordFailure(sent.Mono, err)
	if a.fails == 0 {
		a.failingSince = since
	}
	a.fails++
	a.failure = err
	if isPermanent(err) {
		c.releaseUnknown(cl)
		return err
	}
	if now := c.now().Mono; now.Sub(a.failingSince) >= c.settings.RetryFor {
		a.waiter.FailLocalWaiters(c.settings.RetryFor, err, now)
		c.releaseUnknown(cl)
		return err
	}
	return nil
}

// heldByOthers reports whether another process holds the name.
func (c *core) heldByOthers(held *driver.HeldError) bool {
	me, holder := &c.settings.owner, &held.Holder.Owner
	return held.Holders > 0 && (holder.Client != me.Client || holder.Host != me.Host || holder.PID != me.PID)
}

// endForValue ends a claim that the name's value refuses. The claim has lost its place in
// the queue. If an earlier attempt was not answered, endForValue also releases the claim:
// that attempt may still reach the backend when the name has another value. Or the
// backend granted it, and the lease has ended since. Then the claim itself wrote the
// value that refuses it now, and endForValue reports an unknown outcome.
func (a *attempts) endForValue(refused *driver.ValueNotBelowError) error {
	c, cl := a.c, a.claim
	if cl.lateAttemptEnd == 0 {
		return refused
	}
	c.releaseUnknown(cl)
	if cl.Value != nil && bytes.Equal(refused.Value, cl.Value) {
		return unavailable(c.backend, "acquire", cl.Name, &ownValueError{a.failure})
	}
	return refused
}

// ownValueError says that the refused claim may have written the value itself.
type ownValueError struct{ failure error }

func (e *ownValueError) Unwrap() error { return e.failure }

func (e *ownValueError) Error() string {
	s := "the value was written, and it is not known by whom: an attempt of this claim was not answered"
	if e.failure != nil {
		s += ": " + withoutPrefix(e.failure)
	}
	return s
}

// lastErr returns the last failure or "held" answer, or nil.
func (a *attempts) lastErr() error {
	switch {
	case a.fails > 0:
		return a.failure
	case a.held != nil:
		return a.held
	}
	return nil
}

// wait waits until another attempt makes sense: for a signal, for the time when a lease
// or a place expires, for the keep-alive of the claim's place, or for the end of a pause
// after a failure. If the backend signals a grant, wait returns the hold.
func (a *attempts) wait() (*hold, clock.Reading, error) {
	c, cl := a.c, a.claim
	pause, isLast := a.pause(), false
	if cl.Force && a.fails > 0 {
		left := time.Until(c.epoch.Add(cl.lateAttemptEnd))
		pause, isLast = min(pause, left), left <= pause
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		if isLast {
			c.releaseUnknown(cl)
			return nil, clock.Reading{}, a.failure
		}
		return nil, clock.Reading{}, nil
	case <-c.inboxes.Arrival(cl.Token, &cl.inbox):
		now := c.now()
		return a.holdFromSignal(c.inboxes.Take(cl.Token, &cl.inbox), now), now, nil
	case <-c.closing.Done():
		c.releaseUnknown(cl)
		return nil, clock.Reading{}, ErrClosed
	case <-a.ctx.Done():
		c.releaseUnknown(cl)
		return nil, clock.Reading{}, gaveUp(a.ctx, cl.Name, a.lastErr())
	}
}

// holdFromSignal makes a hold of a signal that reports a grant.
//
// The backend made the grant after it had handled the last attempt that was answered
// "held". So the lease lasts at least the QueueTTL from the sending of that attempt. If
// too little of that time is left, holdFromSignal returns nil, and the next attempt
// extends the lease to a full TTL. It also returns nil for an outdated signal: one whose
// fence is no greater than the fence of that answer. Such a grant may have ended while
// this process was paused, before the claim queued again. Or a quorum granted the claim
// before that attempt, and the attempt did not extend the grant on all of its nodes.
func (a *attempts) holdFromSignal(s driver.Signal, now clock.Reading) *hold {
	if s.Kind != driver.SignalGranted || a.held == nil || s.Fence <= a.held.Fence {
		return nil
	}
	term := trust.NewTerm(a.placedAt, a.placeLasts, a.claim.marginOf(a.placeLasts))
	if !term.Fresh(now) {
		return nil
	}
	return newHold(a.c, a.claim, now, term, s.Fence, s.Fences)
}

// pause returns the time to wait before the next attempt, if no signal comes.
func (a *attempts) pause() time.Duration {
	c := a.c
	if a.fails > 0 {
		return backoff.JitterDown(backoff.Doubled(10*time.Millisecond, a.fails, time.Second))
	}
	third := a.placeLasts / 3
	d := third - backoff.Random(third/8) - c.now().Since(a.placedAt)
	// Only the head of the queue can be granted when a holder expires. If the waiters
	// behind it asked at that time, too, they would get nothing. If the head is dead,
	// they detect that when they renew their places.
	if a.held.Position <= 1 && a.held.RetryAfter > 0 {
		d = min(d, a.held.RetryAfter)
	}
	if !c.pushesGrants() {
		// The pause of a poll has jitter, so that processes do not ask at the same
		// instants.
		d = min(d, backoff.JitterDown(backoff.GrownByHalf(5*time.Millisecond, a.polls, 250*time.Millisecond)))
		a.polls++
	}
	return max(d, time.Millisecond)
}
