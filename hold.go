package pawl

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
	"github.com/pawl-go/pawl/internal/keepalive"
	"github.com/pawl-go/pawl/internal/lazyctx"
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
	user      *claim      // the claim that has the present lease, or had the last one
	lost      *LostError  // set once, when the term ended without a release
	releasing bool        // the last lease was detached, or its Release ends the hold
	unused    atomic.Bool // the holder has not begun its work: the minimum hold does not apply
	next      uint64      // the next fence of the range
	end       uint64      // the first fence after the range
	// lastRenewErr is the error of the last renewal, or nil after a success. If the term
	// ends, it becomes LostError.Err.
	lastRenewErr error

	renewal renewal // the hold's state in core.renewals

	written atomic.Pointer[lastWrite] // nil until the first write of a value, or Detach

	first   Lease           // usually the only lease
	request lazyctx.Storage // memory for the context of the hold's release
}

// A use is the state of a Lease: one claim's use of a hold.
type use struct {
	h     *hold
	claim *claim // the claim that got the hold; it differs from h.claim if the hold was passed on
	fence uint64
	begun time.Duration // when the use began, counted from core.born

	// Protected by h.mu.
	over       error           // nil while the lease is held; then ErrReleased, ErrDetached or a *LostError, for good
	answer     error           // what Release returned
	ended      chan struct{}   // closed when Release has answered; made by a second Release
	phase      phase           // how far Release has come
	announced  bool            // the Observer knows that the lease was acquired
	pendingEnd func()          // reports the end of the lease, if it came before the Observer knew of the lease
	ctx        context.Context // made by the first call of Context
	cancel     context.CancelCauseFunc
}

type renewal = keepalive.Renewal[*hold]

// A lastWrite is the state of the writes of values under a hold. Only one write is under
// way at a time, because the name has to keep the last value.
type lastWrite struct {
	turn chan struct{} // capacity 1: the caller that writes sends a value
	end  time.Time     // until then, an unanswered write may still reach the backend
}

func newHold(c *core, cl *claim, since clock.Reading, tm trust.Term, fence uint64, run int) *hold {
	return &hold{c: c, claim: cl, user: cl, since: since, term: tm, next: fence, end: fence + uint64(max(run, 1))}
}

// grant makes the first lease of the hold. The caller has checked the term.
func (h *hold) grant(now clock.Reading) *Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.anotherLocked(h.claim, now)
}

// pass makes another lease of the hold after the last one was released. It returns nil if
// the hold is lost, or has no fence or too little time left. pass is one step, so that
// Close finds the hold either passed on or given back.
func (h *hold) pass(cl *claim, now clock.Reading) *Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != nil || h.next >= h.end || !h.term.Fresh(now) {
		return nil
	}
	return h.anotherLocked(cl, now)
}

func (h *hold) anotherLocked(cl *claim, now clock.Reading) *Lease {
	l := &h.first
	if l.h != nil { // do not reuse the first Lease, because its user may still read it
		l = &Lease{}
	}
	l.h, l.claim, l.fence, l.begun = h, cl, h.next, now.Mono.Sub(h.c.born)
	h.user = cl
	h.next++
	if h.lost != nil { // Close, or a break, came first
		l.over, l.pendingEnd = h.lost, l.lossReport(h.lost)
		return l
	}
	h.lease, h.releasing = l, false
	return l
}

// owningClaim returns the claim that has the present lease, or had the last one.
func (h *hold) owningClaim() *claim {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.user
}

// givenBack reports whether a Release ends the hold, or Detach has ended it here.
func (h *hold) givenBack() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.releasing
}

// Serves, Pass, Lost and Holder make a hold a localqueue.Hold.

func (h *hold) Serves(cl *claim) bool { return h.claim.alike(cl) }

// Pass refuses a hold that may be lost, because a signal reported a loss and no renewal
// has been answered since. Another client may have taken and released the name meanwhile,
// so a later Lock must get a greater fence.
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
	return h.lost != nil
}

// Holder returns the present lease as the backend shows it, except that its times are of
// this process's clock.
func (h *hold) Holder() driver.Holder {
	now := h.c.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	owner := h.user.Owner
	owner.Labels = maps.Clone(owner.Labels) // it goes to callers, who may change the labels
	return driver.Holder{
		Fence: h.next - 1, Owner: owner, Permits: h.claim.Weight, Limit: h.claim.Limit,
		Since: now.Mono.Round(0).Add(-now.Since(h.since)), TTL: h.claim.TTL, ExpiresIn: max(0, h.term.LeaseLeft(now)),
	}
}

// spare returns the number of times that the hold may still be passed on after its lease
// with this fence: once for each fence that is left.
func (h *hold) spare(fence uint64) int {
	left := int(h.end - fence - 1)
	if left == 0 || h.c.settings.HandoffWindow < 0 || !h.claim.exclusive() || !h.claim.alike(h.claim) {
		return 0
	}
	return left
}

// Plan makes a hold a keepalive.Lease.
func (h *hold) Plan(now clock.Reading) keepalive.RenewalPlan {
	h.mu.Lock()
	defer h.mu.Unlock()
	ttl := h.renewalRef(now).TTL
	return keepalive.RenewalPlan{Left: h.term.Left(now), TTL: ttl, Longer: ttl - h.term.LeaseLeft(now)}
}

// renewed applies the answer to a renewal that was sent at sent and asked for ttl. It
// returns how much of the term is left.
func (h *hold) renewed(sent, now clock.Reading, ttl time.Duration, err error) (left time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.term = h.term.Renewed(sent, ttl, h.claim.marginOf(ttl))
	}
	h.lastRenewErr = err
	return h.term.Left(now)
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

func (h *hold) toReturn(now time.Time) *keepalive.Return[*claim] {
	return &keepalive.Return[*claim]{
		Claim: h.owningClaim(), Lease: h.releaseRef(), TTL: h.claim.TTL,
		Again: h.c.releaseAgainAt(h.claim), Until: h.c.lapsesAt(h.claim, now, h.claim.TTL),
	}
}

// A phase is the stage that the release of a lease has reached.
type phase uint8

const (
	unreleased phase = iota
	releasing
	released
)

// lossReport returns a function that reports a loss to the Observer, or nil if the
// Observer has no Lost. The report runs on a goroutine of its own, because the client's
// goroutines serve other leases as well, and a caller of Err may hold a mutex that the
// Observer waits for.
func (l *Lease) lossReport(why *LostError) func() {
	o := l.h.c.observer
	if o == nil || o.Lost == nil {
		return nil
	}
	e := LostEvent{l.claim.lateEvent(), l, time.Since(l.h.c.born) - l.begun, why}
	return func() { l.h.c.inBackground(func() { o.Lost(e) }) }
}
