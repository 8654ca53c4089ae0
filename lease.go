package pawl

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
	"github.com/pawl-go/pawl/internal/trust"
)

// Lease is a granted lock. The client renews it until it is released or lost.
//
// A lost lease says so before the backend can grant the name to anyone else: Done is closed, and
// Context is cancelled with a *LostError as its cause. Err looks at the clock itself, so it is
// right even in the instant before. No lock can stop a write that is already on its way, or a
// process that is paused between Err and the write: see [Lease.Fence].
//
// A nil *Lease, which comes with every error, is over: its Err and Release return an error that
// matches ErrInvalid.
type Lease struct {
	t     *hold
	claim *claim // the call that got it; not t's if the hold was passed on
	fence uint64
	begun time.Time

	// Protected by t.mu.
	over   error           // nil while it is held; then ErrReleased or a *LostError, for good
	answer error           // what Release said
	ended  chan struct{}   // closed when it has; made by who waits for that
	phase  phase           // how far Release has come
	told   bool            // the Observer was told that it was acquired
	ending func()          // tells of its end, which was quicker than that
	ctx    context.Context // made when somebody asks for it
	cancel context.CancelCauseFunc
}

// A hold is the time for which this process holds a name in the backend: one token, renewed as one. Mostly
// it has one lease. An exclusive hold may be passed among the waiters of this process (see handoff.go), and
// then it has one lease after the other, each with a fence of its own from the range of its hold.
type hold struct {
	c     *Client
	claim *claim
	since clock.Reading // when it began, for the maximum hold: the sending of the attempt that got it, or its signal

	mu     sync.Mutex
	term   trust.Term
	lease  *Lease      // the one now; nil between two, and after the last
	user   *claim      // that has it, or had it last
	gone   *LostError  // set once, when the term ended without a release
	back   bool        // the last lease was released: whoever did that passes the hold on, or gives it back
	unused atomic.Bool // nothing was done under it: it need not be held for its minimum hold
	next   uint64      // the next fence of the range
	end    uint64      // the first fence that is not of the range
	// What the last renewal failed with, nil since one succeeded: says later why the term ended.
	trouble error

	renewal renewal // the renewer's

	first Lease // mostly the only one

	request request // of whoever gives it back
}

func newHold(c *Client, cl *claim, since clock.Reading, tm trust.Term, fence uint64, run int) *hold {
	return &hold{c: c, claim: cl, user: cl, since: since, term: tm, next: fence, end: fence + uint64(max(run, 1))}
}

// grant makes the next lease of the hold. For the first one the caller has looked at the term.
func (t *hold) grant(now clock.Reading) *Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.another(t.claim, now)
}

// pass makes another lease of the hold, whose last one was released; or nil if it is not good for that. It
// is one step, so that Close finds it either passed on or given back.
func (t *hold) pass(cl *claim, now clock.Reading) *Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone != nil || t.next >= t.end || !t.term.Fresh(now) {
		return nil
	}
	return t.another(cl, now)
}

// another is the next lease, for a claim. The caller holds the mutex.
func (t *hold) another(cl *claim, now clock.Reading) *Lease {
	l := &t.first
	if l.t != nil { // it had its time, and its user may still look at it
		l = &Lease{}
	}
	l.t, l.claim, l.fence, l.begun = t, cl, t.next, now.Mono
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

// Name returns the locked name.
func (l *Lease) Name() string {
	if l.none() {
		return ""
	}
	return l.t.claim.Name
}

// Fence returns the fencing token: it is greater than that of every lease granted before on this
// name, by whichever process, also after a crash of the backend. Send it along with each write,
// and let the resource compare:
//
//   - A Mutex, or a writer of an RWMutex: refuse the write if any greater fence was seen on this
//     name. It belongs to an older lease, which is over.
//   - A reader of an RWMutex: readers hold side by side, so a smaller fence may be as good as a
//     greater one. Refuse it only if a greater fence of a writer was seen.
//   - Permits of a Semaphore: refuse nothing, for a lease with a much smaller fence may still be
//     held. To guard such work, give each place a Mutex on a name of its own.
func (l *Lease) Fence() uint64 {
	if l.none() {
		return 0
	}
	return l.fence
}

// Err returns nil while the lease can be trusted, then a *LostError or ErrReleased. It looks at
// the clock, so it is right at every instant, also when the process was paused just before.
func (l *Lease) Err() error {
	if l.none() {
		return errNoLease
	}
	return l.check(l.t.c.now())
}

// none reports whether nobody was ever granted this one.
func (l *Lease) none() bool { return l == nil || l.t == nil }

var errNoLease = &InvalidError{What: "lease", Problem: "is nil", Allowed: "one that was granted"}

// overBefore is the context of no lease.
func overBefore() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errNoLease)
	return ctx
}

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

// Context returns a context that is cancelled when the lease is over, with a *LostError or
// ErrReleased as its cause. It has the values of the context that the lock was acquired with, but
// does not end with it.
func (l *Lease) Context() context.Context {
	if l.none() {
		return overBefore()
	}
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithCancelCause(withFence(context.WithoutCancel(l.claim.ctx), l))
		if l.over != nil {
			l.cancel(l.over)
		}
	}
	return l.ctx
}

// Done returns a channel that is closed when the lease is over; then Err says why.
func (l *Lease) Done() <-chan struct{} { return l.Context().Done() }

// Deadline returns when the lease will be lost, on this process's clock, unless it is renewed
// before. Each renewal moves it.
func (l *Lease) Deadline() time.Time {
	if l.none() {
		return time.Time{}
	}
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	now := l.t.c.now()
	return now.Mono.Add(l.t.term.Left(now))
}

// finish ends the lease for the given reason, and returns nil; or returns why it was over before.
func (l *Lease) finish(why error) error {
	l.t.mu.Lock()
	if l.over != nil {
		defer l.t.mu.Unlock()
		return l.over
	}
	l.over = why
	l.t.lease = nil
	l.t.back = why == ErrReleased //nolint:errorlint // it is the reason as it was given
	cancel := l.cancel
	l.t.mu.Unlock()
	if cancel != nil { // not under the mutex: it runs what the user hung on the context
		cancel(why)
	}
	return nil
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

// lose ends the hold, and the lease that it has now, without a release. Only the first call does anything,
// so that lost is said once. A lease that was released before is not lost.
func (t *hold) lose(why LostError) {
	t.mu.Lock()
	if t.gone != nil {
		t.mu.Unlock()
		return
	}
	now := t.c.now()
	why.Name, why.Fence = t.claim.Name, t.next-1
	if why.Until.IsZero() {
		// Nobody told the backend to end it: it keeps the lease for what is left of the TTL, and then closed
		// for the lock-delay.
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
	t.c.renewer.Remove(&t.renewal)
	t.c.inboxes.of(t.claim.Token).remove(t.claim)
	if t.spare(why.Fence) > 0 {
		t.c.queues.Drop(t.claim.Name, t, now.Mono)
	}
	if l != nil {
		l.tellEnd(l.lossAside(&why))
	}
}

// wire is how the backend is told which lease is meant, and how long it shall last: its TTL, or what is left
// until its maximum hold.
func (t *hold) wire(now clock.Reading) driver.LeaseRef {
	ttl := t.claim.TTL
	if t.claim.maxHold > 0 {
		ttl = min(ttl, t.claim.maxHold-now.Since(t.since))
	}
	return driver.LeaseRef{Name: t.claim.Name, Token: t.claim.Token, TTL: ttl}
}
