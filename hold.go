package pawl

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
	"github.com/pawl-go/pawl/internal/keepalive"
	"github.com/pawl-go/pawl/internal/lazyctx"
	"github.com/pawl-go/pawl/internal/trust"
)

// A hold is the time for which this process holds a name in the backend: one token,
// renewed as one. Mostly it has one lease. An exclusive hold may be passed among the
// waiters of this process (see Pass), and then it has one lease after the other, each
// with a fence of its own from the range of its hold.
type hold struct {
	c     *core
	claim *claim
	since clock.Reading // when it began, for the maximum hold: the sending of the attempt that got it, or its signal

	mu     sync.Mutex
	term   trust.Term
	lease  *Lease      // the one now; nil between two, and after the last
	user   *claim      // that has it, or had it last
	gone   *LostError  // set once, when the term ended without a release
	back   bool        // the last lease was detached; or released, and who did that sees to the hold
	unused atomic.Bool // nothing was done under it: it need not be held for its minimum hold
	next   uint64      // the next fence of the range
	end    uint64      // the first fence that is not of the range
	// What the last renewal failed with, nil since one succeeded: says later why the term
	// ended.
	trouble error

	renewal renewal // the renewer's

	written atomic.Pointer[lastWrite] // nil until a value is written

	first   Lease        // mostly the only one
	request lazyctx.Room // of whoever gives it back
}

type renewal = keepalive.Renewal[*hold]

// A lastWrite is what is known of the last value that was written under a hold, and
// answered or not. One write goes at a time, for what comes last has to be what is kept.
type lastWrite struct {
	turn chan struct{} // has room for the one who writes
	end  time.Time     // until when one that was not answered may yet arrive
}

func newHold(c *core, cl *claim, since clock.Reading, tm trust.Term, fence uint64, run int) *hold {
	return &hold{c: c, claim: cl, user: cl, since: since, term: tm, next: fence, end: fence + uint64(max(run, 1))}
}

// grant makes the next lease of the hold. For the first one the caller has looked at the
// term.
func (t *hold) grant(now clock.Reading) *Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.anotherLocked(t.claim, now)
}

// pass makes another lease of the hold, whose last one was released; or nil if it is not
// good for that. It is one step, so that Close finds it either passed on or given back.
func (t *hold) pass(cl *claim, now clock.Reading) *Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone != nil || t.next >= t.end || !t.term.Fresh(now) {
		return nil
	}
	return t.anotherLocked(cl, now)
}

// anotherLocked is the next lease, for a claim.
func (t *hold) anotherLocked(cl *claim, now clock.Reading) *Lease {
	l := &t.first
	if l.t != nil { // it had its time, and its user may still look at it
		l = &Lease{}
	}
	l.t, l.claim, l.fence, l.begun = t, cl, t.next, now.Mono.Sub(t.c.born)
	t.user = cl
	t.next++
	if t.gone != nil { // already: Close, or a break, was quicker
		l.over, l.ending = t.gone, l.lossAside(t.gone)
		return l
	}
	t.lease, t.back = l, false
	return l
}

// whose is the claim that has the lease now, or had it last.
func (t *hold) whose() *claim {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.user
}

// givenBack reports whether a Release sees to the hold's end in the backend.
func (t *hold) givenBack() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.back
}

// Alike, Pass and Lost make a hold a localqueue.Hold.

func (t *hold) Alike(cl *claim) bool { return t.claim.alike(cl) }

// Pass makes nothing of a hold that may be lost: a signal said so, and the backend has
// not answered yet. Whoever took it may have come back from that, and who locks after
// that has to get a greater fence.
func (t *hold) Pass(cl *claim) bool {
	if t.renewal.InDoubt() {
		return false
	}
	cl.passed = t.pass(cl, t.c.now())
	return cl.passed != nil
}

func (t *hold) Lost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gone != nil
}

// spare is how often the hold may be passed on when its lease with this fence is
// released, by what is left of its run.
func (t *hold) spare(fence uint64) int {
	left := int(t.end - fence - 1)
	if left == 0 || t.c.settings.LocalHandoff < 0 || !t.claim.exclusive() || !t.claim.alike(t.claim) {
		return 0
	}
	return left
}

// Outlook makes a hold a keepalive.Lease.
func (t *hold) Outlook(now clock.Reading) keepalive.Outlook {
	t.mu.Lock()
	defer t.mu.Unlock()
	ttl := t.wire(now).TTL
	return keepalive.Outlook{Left: t.term.Left(now), TTL: ttl, Longer: ttl - t.term.LeaseLeft(now)}
}

// renewed notes the answer to a renewal that was sent then, and asked for ttl. It returns
// what is left of the term.
func (t *hold) renewed(sent, now clock.Reading, ttl time.Duration, err error) (left time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.term = t.term.Renewed(sent, ttl, t.claim.marginOf(ttl))
	}
	t.trouble = err
	return t.term.Left(now)
}

// expire ends a hold whose term is over.
func (t *hold) expire() {
	t.mu.Lock()
	reason, err := ReasonExpired, t.trouble
	switch {
	case t.claim.maxHold > 0 && t.c.now().Since(t.since) >= t.claim.maxHold-t.claim.marginOf(t.claim.TTL):
		reason, err = ReasonMaxHold, nil
	case err != nil:
		reason = ReasonUnreachable
	}
	t.mu.Unlock()
	t.lose(LostError{Reason: reason, Err: err})
}

// lose ends the hold, and the lease that it has now, without a release. Only the first
// call does anything, so that lost is said once. A lease that was released before is not
// lost.
func (t *hold) lose(why LostError) {
	t.mu.Lock()
	if t.gone != nil {
		t.mu.Unlock()
		return
	}
	now := t.c.now()
	why.Name, why.Fence, why.Err = t.claim.Name, t.next-1, notOfTheCaller(why.Err)
	if why.Until.IsZero() {
		// Nobody told the backend to end it: it keeps the lease for what is left of the
		// TTL, and then closed for the lock-delay.
		why.Until = now.Mono.Add(t.term.LeaseLeft(now) + t.claim.LockDelay)
	}
	t.gone = &why
	l := t.lease
	var cancel context.CancelCauseFunc
	if l != nil {
		l.over, cancel = &why, l.cancel
		t.lease = nil
	}
	t.mu.Unlock()

	if cancel != nil {
		cancel(&why)
	}
	t.leave(now.Mono)
	if l != nil {
		l.tellEnd(l.lossAside(&why))
	}
}

// leave takes the hold out of all books of this process: nobody renews it, checks it or
// passes it on any more. It is the one way out, whatever has ended the hold.
func (t *hold) leave(now time.Time) {
	c := t.c
	c.renewals.Remove(&t.renewal)
	c.inboxes.Remove(t.claim.Token, &t.claim.inbox)
	t.mu.Lock()
	spare := t.spare(t.next - 1)
	t.mu.Unlock()
	if spare > 0 {
		c.queues.Drop(t.claim.Name, t, now)
	}
}

// wire is how the backend is told which lease is meant, and how long it shall last: its
// TTL, or what is left until its maximum hold.
func (t *hold) wire(now clock.Reading) driver.LeaseRef {
	ttl := t.claim.TTL
	if t.claim.maxHold > 0 {
		ttl = min(ttl, t.claim.maxHold-now.Since(t.since))
	}
	return driver.LeaseRef{Name: t.claim.Name, Token: t.claim.Token, TTL: ttl}
}

// last is how the backend is told to end it.
func (t *hold) last() driver.LeaseRef {
	l := driver.LeaseRef{Name: t.claim.Name, Token: t.claim.Token, MinHold: t.claim.minHold}
	if t.unused.Load() {
		l.MinHold = 0
	}
	return l
}

func (t *hold) toReturn(now time.Time) *keepalive.Return[*claim] {
	return &keepalive.Return[*claim]{
		Claim: t.whose(), Lease: t.last(), TTL: t.claim.TTL,
		Again: t.c.again(t.claim), Until: t.c.over(t.claim, now, t.claim.TTL),
	}
}

// A phase is how far the release of a lease has come.
type phase uint8

const (
	unreleased phase = iota
	releasing
	released
)

func (l *Lease) check(now clock.Reading) error {
	t := l.t
	t.mu.Lock()
	over, held := l.over, t.term.Left(now) > 0
	t.mu.Unlock()
	if over == nil && !held {
		t.expire()
		t.mu.Lock()
		over = l.over
		t.mu.Unlock()
	}
	return over
}

// finish ends the lease for the given reason, and returns nil; or returns why it was over
// before.
func (l *Lease) finish(why error) error {
	l.t.mu.Lock()
	if l.over != nil {
		defer l.t.mu.Unlock()
		return l.over
	}
	l.over = why
	l.t.lease = nil
	l.t.back = why == ErrReleased || why == ErrDetached //nolint:errorlint // it is the reason as it was given
	cancel := l.cancel
	l.t.mu.Unlock()
	if cancel != nil { // not under the mutex: it runs what the user hung on the context
		cancel(why)
	}
	return nil
}

// tellEnd tells of the end of a lease, or leaves that to announce. tell may be nil.
func (l *Lease) tellEnd(tell func()) {
	l.t.mu.Lock()
	if !l.told {
		l.ending, tell = tell, nil
	}
	l.t.mu.Unlock()
	if tell != nil {
		tell()
	}
}

// lossAside is what tells of a loss that the client found, on a goroutine of its own; nil
// if nobody wants to know. The client's own goroutines have leases of others to see to,
// and whoever calls Err may hold what the Observer waits for.
func (l *Lease) lossAside(why *LostError) func() {
	o := l.t.c.observer
	if o == nil || o.Lost == nil {
		return nil
	}
	e := LostEvent{l.claim.later(), l, time.Since(l.t.c.born) - l.begun, why}
	return func() { l.t.c.aside(func() { o.Lost(e) }) }
}
