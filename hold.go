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
	"github.com/pawl-go/pawl/internal/returner"
	"github.com/pawl-go/pawl/internal/trust"
)

// A hold is one lease of the backend: one token, which the client renews. Usually it has
// one Lease. An exclusive hold may be passed among the waiters of this process (see
// Pass); then it has one Lease after the other, each with its own fence from the range of
// the hold.
type hold struct {
	c     *core
	claim *claim
	since clock.Reading // the start of the maximum hold: when the attempt or Attach was sent, or the signal came

	mu        sync.Mutex
	term      trust.Term
	lease     *Lease      // the present lease; nil between two leases, and after the last
	current   *claim      // the claim that has the present lease, or had the last one
	lost      *LostError  // set once, when the term ended without a release
	givenBack bool        // the last lease was detached, or its Release ends the hold
	unused    atomic.Bool // the holder has not begun its work: the minimum hold does not apply
	nextFence uint64      // the next fence of the range
	fenceEnd  uint64      // the first fence after the range
	// lastRenewErr is the error of the last renewal, or nil after a success. If the term
	// ends, it becomes LostError.Err.
	lastRenewErr error

	renewal renewal // the hold's state in core.renewals

	writes atomic.Pointer[writeState] // nil until the first write of a value, or Detach

	first   Lease           // usually the only lease
	request lazyctx.Storage // memory for the context of the hold's release
}

// A leaseState is the state of a Lease: one claim's use of a hold.
type leaseState struct {
	h           *hold
	claim       *claim // the claim that got the hold; it differs from h.claim if the hold was passed on
	fence       uint64
	beginOffset time.Duration // when the lease began, counted from core.epoch

	// Protected by h.mu.
	endReason  error           // nil while the lease is held; then ErrReleased, ErrDetached or a *LostError, for good
	answer     error           // what Release returned
	ended      chan struct{}   // closed when Release has answered; made by a second Release
	phase      phase           // how far Release has come
	announced  bool            // the Observer knows that the lease was acquired
	pendingEnd func()          // reports the end of the lease, if it came before the Observer knew of the lease
	ctx        context.Context // made by the first call of Context
	cancel     context.CancelCauseFunc
}

type renewal = keepalive.Renewal[*hold]

// A writeState is the state of the writes of values under a hold. Only one write is under
// way at a time, because the name has to keep the last value.
type writeState struct {
	turn chan struct{} // capacity 1; full while a caller writes
	end  time.Time     // until then, an unanswered write may still reach the backend
}

func newHold(c *core, cl *claim, since clock.Reading, term trust.Term, fence uint64, fences int) *hold {
	return &hold{c: c, claim: cl, current: cl, since: since, term: term, nextFence: fence, fenceEnd: fence + uint64(max(fences, 1))}
}

// grant makes the first lease of the hold. The caller has checked the term.
func (h *hold) grant(now clock.Reading) *Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newLeaseLocked(h.claim, now)
}

// nextLease makes another lease of the hold after the last one was released. It returns
// nil if the hold is lost, or has no fence or too little time left. It is one step, so
// that Close finds the hold either passed on or given back.
func (h *hold) nextLease(cl *claim, now clock.Reading) *Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != nil || h.nextFence >= h.fenceEnd || !h.term.Fresh(now) {
		return nil
	}
	return h.newLeaseLocked(cl, now)
}

func (h *hold) newLeaseLocked(cl *claim, now clock.Reading) *Lease {
	l := &h.first
	if l.h != nil { // do not reuse the first Lease, because its user may still read it
		l = &Lease{}
	}
	l.h, l.claim, l.fence, l.beginOffset = h, cl, h.nextFence, now.Mono.Sub(h.c.epoch)
	h.current = cl
	h.nextFence++
	if h.lost != nil { // Close, or a break, came first
		l.endReason, l.pendingEnd = h.lost, l.lossReport(h.lost)
		return l
	}
	h.lease, h.givenBack = l, false
	return l
}

// currentClaim returns the claim that has the present lease, or had the last one.
func (h *hold) currentClaim() *claim {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current
}

// isGivenBack reports whether a Release ends the hold, or Detach has ended it here.
func (h *hold) isGivenBack() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.givenBack
}

// Serves, Pass, Lost and Holder implement localqueue.Hold.

func (h *hold) Serves(cl *claim) bool { return h.claim.canShareLease(cl) }

// Pass refuses a hold that may be lost, because a signal reported a loss and no renewal
// has been answered since. Another client may have taken and released the name meanwhile,
// so a later Lock must get a greater fence.
func (h *hold) Pass(cl *claim) bool {
	if h.renewal.InDoubt() {
		return false
	}
	cl.passedLease = h.nextLease(cl, h.c.now())
	return cl.passedLease != nil
}

func (h *hold) Lost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost != nil
}

// Holder returns the present lease as the backend shows it, except that its times are of
// this process's clock.
func (h *hold) Holder() driver.Holder {
	now := h.c.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	return driver.Holder{
		Fence: h.nextFence - 1, Owner: h.current.Owner.Clone(), Permits: h.claim.Weight, Limit: h.claim.Limit,
		Since: now.Mono.Round(0).Add(-now.Since(h.since)), TTL: h.claim.TTL, ExpiresIn: max(0, h.term.LeaseLeft(now)),
	}
}

// passesLeft returns the number of times that the hold may still be passed on after its
// lease with this fence: once for each fence that is left.
func (h *hold) passesLeft(fence uint64) int {
	fences := int(h.fenceEnd - fence - 1)
	if fences == 0 || h.c.settings.HandoffWindow < 0 || !h.claim.exclusive() || !h.claim.canShareLease(h.claim) {
		return 0
	}
	return fences
}

// Plan implements keepalive.Lease.
func (h *hold) Plan(now clock.Reading) keepalive.RenewalPlan {
	h.mu.Lock()
	defer h.mu.Unlock()
	ttl := h.renewalRef(now).TTL
	return keepalive.RenewalPlan{Left: h.term.Left(now), TTL: ttl, Extension: ttl - h.term.LeaseLeft(now)}
}

// applyRenewal applies the answer to a renewal that the client sent at the time sent,
// with the TTL ttl. It returns how much of the term is left.
func (h *hold) applyRenewal(sent, now clock.Reading, ttl time.Duration, err error) (left time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.term = h.term.Renewed(sent, ttl, h.claim.marginOf(ttl))
	}
	h.lastRenewErr = err
	return h.term.Left(now)
}

func (h *hold) expire() {
	h.mu.Lock()
	reason, err := ReasonExpired, h.lastRenewErr
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
func (h *hold) lose(loss LostError) {
	h.mu.Lock()
	if h.lost != nil {
		h.mu.Unlock()
		return
	}
	now := h.c.now()
	loss.Name, loss.Fence, loss.Err = h.claim.Name, h.nextFence-1, withoutCtxMatch(loss.Err)
	if loss.StopBy.IsZero() {
		// No request has ended the lease in the backend. The backend keeps it for the
		// rest of the TTL, and then keeps the name closed for the lock-delay.
		loss.StopBy = now.Mono.Add(h.term.LeaseLeft(now) + h.claim.LockDelay)
	}
	h.lost = &loss
	l := h.lease
	var cancel context.CancelCauseFunc
	if l != nil {
		l.endReason, cancel = &loss, l.cancel
		h.lease = nil
	}
	h.mu.Unlock()

	if cancel != nil {
		cancel(&loss)
	}
	h.removeFromLists(now.Mono)
	if l != nil {
		l.reportEnd(l.lossReport(&loss))
	}
}

// removeFromLists removes the hold from all lists of this process: the core does not
// renew it, check it or pass it on any more. Every end of a hold calls removeFromLists.
func (h *hold) removeFromLists(now time.Time) {
	c := h.c
	c.renewals.Remove(&h.renewal)
	c.inboxes.Remove(h.claim.Token, &h.claim.inbox)
	h.mu.Lock()
	passes := h.passesLeft(h.nextFence - 1)
	h.mu.Unlock()
	if passes > 0 {
		c.queues.Drop(h.claim.Name, h, now)
	}
}

// renewalRef returns the driver's reference to the lease, for a renewal. Its TTL is the
// claim's, or the time left of the maximum hold if that is less.
func (h *hold) renewalRef(now clock.Reading) driver.LeaseRef {
	ttl := h.claim.TTL
	if h.claim.maxHold > 0 {
		ttl = min(ttl, h.claim.maxHold-now.Since(h.since))
	}
	return driver.LeaseRef{Name: h.claim.Name, Token: h.claim.Token, TTL: ttl}
}

func (h *hold) releaseRef() driver.LeaseRef {
	l := driver.LeaseRef{Name: h.claim.Name, Token: h.claim.Token, MinHold: h.claim.minHold}
	if h.unused.Load() {
		l.MinHold = 0
	}
	return l
}

func (h *hold) newReturn(now time.Time) *returner.Return[*claim] {
	return &returner.Return[*claim]{
		Claim: h.currentClaim(), Lease: h.releaseRef(), TTL: h.claim.TTL,
		ReleaseAgainAt: h.c.releaseAgainAt(h.claim), Until: h.c.expiresAt(h.claim, now, h.claim.TTL),
	}
}

// A phase is the stage that the release of a lease has reached.
type phase uint8

const (
	unreleased phase = iota
	releasing
	released
)

func (l *Lease) checkTerm(now clock.Reading) error {
	h := l.h
	h.mu.Lock()
	endReason, held := l.endReason, h.term.Left(now) > 0
	h.mu.Unlock()
	if endReason == nil && !held {
		h.expire()
		h.mu.Lock()
		endReason = l.endReason
		h.mu.Unlock()
	}
	return endReason
}

// finish ends the lease for the given reason, and returns nil. If the lease was over
// before, finish returns the earlier reason.
func (l *Lease) finish(reason error) error {
	l.h.mu.Lock()
	if l.endReason != nil {
		defer l.h.mu.Unlock()
		return l.endReason
	}
	l.endReason = reason
	l.h.lease = nil
	l.h.givenBack = reason == ErrReleased || reason == ErrDetached //nolint:errorlint // it is the reason as it was given
	cancel := l.cancel
	l.h.mu.Unlock()
	if cancel != nil { // not under the mutex: it runs functions that the user attached to the context
		cancel(reason)
	}
	return nil
}

// reportEnd calls report, unless it is nil, to report the end of a lease to the Observer.
// If the Observer does not know of the lease yet, announce calls report later, after it
// has reported the beginning.
func (l *Lease) reportEnd(report func()) {
	l.h.mu.Lock()
	if !l.announced {
		l.pendingEnd, report = report, nil
	}
	l.h.mu.Unlock()
	if report != nil {
		report()
	}
}

// lossReport returns a function that reports a loss to the Observer, or nil if the
// Observer has no Lost. The report runs on a goroutine of its own. The client's
// goroutines must not wait for it, because they serve other leases as well. A caller of
// Err must not, because it may hold a mutex that the Observer waits for.
func (l *Lease) lossReport(loss *LostError) func() {
	o := l.h.c.observer
	if o == nil || o.Lost == nil {
		return nil
	}
	e := LostEvent{l.claim.lateEvent(), l, time.Since(l.h.c.epoch) - l.beginOffset, loss}
	return func() { l.h.c.runInBackground(func() { o.Lost(e) }) }
}
