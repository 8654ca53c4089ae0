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
	back   bool        // the last lease was detached; or released, and that Release ends the hold
	unused atomic.Bool // nothing was done under it: it need not be held for its minimum hold
	next   uint64      // the next fence of the range
	end    uint64      // the first fence that is not of the range
	// What the last renewal failed with, nil since one succeeded: says later why the term
	// ended.
	trouble error

	renewal renewal // its place among core.renewals

	written atomic.Pointer[lastWrite] // nil until a value is written

	first   Lease        // mostly the only one
	request lazyctx.Room // of its release
}

// A use is the time for which one claim has a hold: what a Lease is made of.
type use struct {
	h     *hold
	claim *claim // the call that got it; not h's if the hold was passed on
	fence uint64
	begun time.Duration // since core.born

	// Protected by h.mu.
	over   error           // nil while it is held; then ErrReleased or a *LostError, for good
	answer error           // what Release said
	ended  chan struct{}   // closed when Release has answered; made by a second Release
	phase  phase           // how far Release has come
	told   bool            // the Observer was told that it was acquired
	ending func()          // tells of its end, which was quicker than that
	ctx    context.Context // made by the first call of Context
	cancel context.CancelCauseFunc
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
func (h *hold) grant(now clock.Reading) *Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.anotherLocked(h.claim, now)
}

// pass makes another lease of the hold, whose last one was released; or nil if it is not
// good for that. It is one step, so that Close finds it either passed on or given back.
func (h *hold) pass(cl *claim, now clock.Reading) *Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone != nil || h.next >= h.end || !h.term.Fresh(now) {
		return nil
	}
	return h.anotherLocked(cl, now)
}

func (h *hold) anotherLocked(cl *claim, now clock.Reading) *Lease {
	l := &h.first
	if l.h != nil { // it had its time, and its user may still look at it
		l = &Lease{}
	}
	l.h, l.claim, l.fence, l.begun = h, cl, h.next, now.Mono.Sub(h.c.born)
	h.user = cl
	h.next++
	if h.gone != nil { // already: Close, or a break, was quicker
		l.over, l.ending = h.gone, l.lossAside(h.gone)
		return l
	}
	h.lease, h.back = l, false
	return l
}

// whose is the claim that has the lease now, or had it last.
func (h *hold) whose() *claim {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.user
}

// givenBack reports whether a Release sees to the hold's end in the backend.
func (h *hold) givenBack() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.back
}

// Alike, Pass and Lost make a hold a localqueue.Hold.

func (h *hold) Alike(cl *claim) bool { return h.claim.alike(cl) }

// Pass refuses a hold that may be lost: a signal said so, and the backend has not
// answered yet. The lease may have been taken and released meanwhile, so a later Lock
// must get a greater fence.
func (h *hold) Pass(cl *claim) bool {
	if h.renewal.InDoubt() {
		return false
	}
	cl.passed = h.pass(cl, h.c.now())
	return cl.passed != nil
}

func (h *hold) Lost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone != nil
}

// spare is how often the hold may be passed on when its lease with this fence is
// released, by what is left of its run.
func (h *hold) spare(fence uint64) int {
	left := int(h.end - fence - 1)
	if left == 0 || h.c.settings.LocalHandoff < 0 || !h.claim.exclusive() || !h.claim.alike(h.claim) {
		return 0
	}
	return left
}

// Outlook makes a hold a keepalive.Lease.
func (h *hold) Outlook(now clock.Reading) keepalive.Outlook {
	h.mu.Lock()
	defer h.mu.Unlock()
	ttl := h.wire(now).TTL
	return keepalive.Outlook{Left: h.term.Left(now), TTL: ttl, Longer: ttl - h.term.LeaseLeft(now)}
}

// renewed notes the answer to a renewal that was sent then, and asked for ttl. It returns
// what is left of the term.
func (h *hold) renewed(sent, now clock.Reading, ttl time.Duration, err error) (left time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.term = h.term.Renewed(sent, ttl, h.claim.marginOf(ttl))
	}
	h.trouble = err
	return h.term.Left(now)
}

// expire ends a hold whose term is over.
func (h *hold) expire() {
	h.mu.Lock()
	reason, err := ReasonExpired, h.trouble
	switch {
	case h.claim.maxHold > 0 && h.c.now().Since(h.since) >= h.claim.maxHold-h.claim.marginOf(h.claim.TTL):
		reason, err = ReasonMaxHold, nil
	case err != nil:
		reason = ReasonUnreachable
	}
	h.mu.Unlock()
	h.lose(LostError{Reason: reason, Err: err})
}

// lose ends the hold, and the lease that it has now, without a release. Only the first
// call does anything, so the client reports each loss once. A lease that was released
// before is not lost.
func (h *hold) lose(why LostError) {
	h.mu.Lock()
	if h.gone != nil {
		h.mu.Unlock()
		return
	}
	now := h.c.now()
	why.Name, why.Fence, why.Err = h.claim.Name, h.next-1, notOfTheCaller(why.Err)
	if why.Until.IsZero() {
		// No request has ended the lease in the backend. The backend keeps it for what is
		// left of the TTL, and then keeps the name closed for the lock-delay.
		why.Until = now.Mono.Add(h.term.LeaseLeft(now) + h.claim.LockDelay)
	}
	h.gone = &why
	l := h.lease
	var cancel context.CancelCauseFunc
	if l != nil {
		l.over, cancel = &why, l.cancel
		h.lease = nil
	}
	h.mu.Unlock()

	if cancel != nil {
		cancel(&why)
	}
	h.leave(now.Mono)
	if l != nil {
		l.tellEnd(l.lossAside(&why))
	}
}

// leave takes the hold out of all books of this process: the core does not renew it,
// check it or pass it on any more. Every end of a hold goes through leave.
func (h *hold) leave(now time.Time) {
	c := h.c
	c.renewals.Remove(&h.renewal)
	c.inboxes.Remove(h.claim.Token, &h.claim.inbox)
	h.mu.Lock()
	spare := h.spare(h.next - 1)
	h.mu.Unlock()
	if spare > 0 {
		c.queues.Drop(h.claim.Name, h, now)
	}
}

// wire names the lease for a renewal, and says how long it shall last: its TTL, or what
// is left until its maximum hold.
func (h *hold) wire(now clock.Reading) driver.LeaseRef {
	ttl := h.claim.TTL
	if h.claim.maxHold > 0 {
		ttl = min(ttl, h.claim.maxHold-now.Since(h.since))
	}
	return driver.LeaseRef{Name: h.claim.Name, Token: h.claim.Token, TTL: ttl}
}

// last names the lease for its release.
func (h *hold) last() driver.LeaseRef {
	l := driver.LeaseRef{Name: h.claim.Name, Token: h.claim.Token, MinHold: h.claim.minHold}
	if h.unused.Load() {
		l.MinHold = 0
	}
	return l
}

func (h *hold) toReturn(now time.Time) *keepalive.Return[*claim] {
	return &keepalive.Return[*claim]{
		Claim: h.whose(), Lease: h.last(), TTL: h.claim.TTL,
		Again: h.c.again(h.claim), Until: h.c.over(h.claim, now, h.claim.TTL),
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
	h := l.h
	h.mu.Lock()
	over, held := l.over, h.term.Left(now) > 0
	h.mu.Unlock()
	if over == nil && !held {
		h.expire()
		h.mu.Lock()
		over = l.over
		h.mu.Unlock()
	}
	return over
}

// finish ends the lease for the given reason, and returns nil; or returns why it was over
// before.
func (l *Lease) finish(why error) error {
	l.h.mu.Lock()
	if l.over != nil {
		defer l.h.mu.Unlock()
		return l.over
	}
	l.over = why
	l.h.lease = nil
	l.h.back = why == ErrReleased || why == ErrDetached //nolint:errorlint // it is the reason as it was given
	cancel := l.cancel
	l.h.mu.Unlock()
	if cancel != nil { // not under the mutex: it runs what the user hung on the context
		cancel(why)
	}
	return nil
}

// tellEnd calls tell, which tells the Observer of the end of a lease. Before announce has
// told of its beginning, tellEnd leaves that to announce. tell may be nil.
func (l *Lease) tellEnd(tell func()) {
	l.h.mu.Lock()
	if !l.told {
		l.ending, tell = tell, nil
	}
	l.h.mu.Unlock()
	if tell != nil {
		tell()
	}
}

// lossAside returns a function that tells the Observer of a loss, on a goroutine of its
// own, or nil if the Observer does not ask for losses. The client's own goroutines serve
// other leases as well, and a caller of Err may hold a mutex that the Observer waits for.
func (l *Lease) lossAside(why *LostError) func() {
	o := l.h.c.observer
	if o == nil || o.Lost == nil {
		return nil
	}
	e := LostEvent{l.claim.later(), l, time.Since(l.h.c.born) - l.begun, why}
	return func() { l.h.c.aside(func() { o.Lost(e) }) }
}
