package pawl

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Lease is a granted lock. It is renewed by the client until it is released or lost.
//
// A lease that is lost says so before the backend can grant the name to anybody else: Done is closed, Context
// is cancelled with a *LostError as its cause, and Err, which looks at the clock itself, is right even in the
// instant before. What no lock can stop is a write that is already on its way, or a process that is paused
// between Err and the write: see [Lease.Fence].
//
// A nil *Lease, which comes with every error, is over: its Err and Release answer an error that Is ErrInvalid.
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
	since reading // when it began, for the maximum hold: the sending of the attempt that got it, or its signal

	mu     sync.Mutex
	term   term
	lease  *Lease      // the one now; nil between two, and after the last
	gone   *LostError  // set once, when the term ended without a release
	back   bool        // the last lease was released: whoever did that passes the hold on, or gives it back
	unused atomic.Bool // nothing was done under it: it need not be held for its minimum hold
	next   uint64      // the next fence of the range
	end    uint64      // the first fence that is not of the range
	// What the last renewal failed with, nil since one succeeded: says later why the term ended.
	trouble error

	due renewal // protected by the renewer's mutex

	first Lease // mostly the only one
}

func newHold(c *Client, cl *claim, since reading, tm term, fence uint64, run int) *hold {
	return &hold{c: c, claim: cl, since: since, term: tm, next: fence, end: fence + uint64(max(run, 1))}
}

// grant makes the next lease of the hold. For the first one the caller has looked at the term.
func (t *hold) grant(now reading) *Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.another(t.claim, now)
}

// pass makes another lease of the hold, whose last one was released; or nil if it is not good for that. It
// is one step, so that Close finds it either passed on or given back.
func (t *hold) pass(cl *claim, now reading) *Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone != nil || t.next >= t.end || !t.term.fresh(now) {
		return nil
	}
	return t.another(cl, now)
}

// another is the next lease, for a claim. The caller holds the mutex.
func (t *hold) another(cl *claim, now reading) *Lease {
	l := &t.first
	if l.t != nil { // it had its time, and its user may still look at it
		l = &Lease{}
	}
	l.t, l.claim, l.fence, l.begun = t, cl, t.next, now.mono
	t.next++
	if t.gone != nil { // already: Close, or a break, was quicker
		l.over, l.ending = t.gone, l.lossAside(t.gone)
		return l
	}
	t.lease, t.back = l, false
	return l
}

// whose is the claim that has the lease now, or that began the hold.
func (t *hold) whose() *claim {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lease != nil {
		return t.lease.claim
	}
	return t.claim
}

// givenBack reports whether a Release sees to the hold's end in the backend.
func (t *hold) givenBack() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.back
}

// Name is what is locked.
func (l *Lease) Name() string {
	if l.none() {
		return ""
	}
	return l.t.claim.Name
}

// Fence is the fencing token: greater than that of every lease granted on this name before, by whichever
// process, also after a crash of the backend. Send it along with what is written, and let the resource compare:
//
//   - Of a Mutex, or a writer of an RWMutex: refuse it if any greater one was seen on this name. It is of an older
//     lease, which is over.
//   - Of a reader: others hold beside it, so a smaller fence may be as good as a greater one. Refuse it only if a
//     greater one of a writer was seen.
//   - Of permits of a Semaphore: there is nothing to refuse, for a lease with a much smaller fence may still be held.
//     Where that has to be guarded, give each place a Mutex on a name of its own.
func (l *Lease) Fence() uint64 {
	if l.none() {
		return 0
	}
	return l.fence
}

// Err says whether the lease can be trusted now: nil, or a *LostError, or ErrReleased. It looks at the clock,
// so it is right at every instant, also when the process was paused just before.
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

func (l *Lease) check(now reading) error {
	t := l.t
	t.mu.Lock()
	over, held := l.over, t.term.left(now) > 0
	t.mu.Unlock()
	if over == nil && !held {
		t.expire()
		t.mu.Lock()
		over = l.over
		t.mu.Unlock()
	}
	return over
}

// Context is cancelled when the lease is over: its cause is a *LostError, or ErrReleased. It has the values
// of the context that the lock was acquired with, but does not end with it.
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

// Done is closed when the lease is over; then Err says why.
func (l *Lease) Done() <-chan struct{} { return l.Context().Done() }

// Deadline is when the lease will be lost, on this process's clock, unless it is renewed before. Each renewal
// moves it.
func (l *Lease) Deadline() time.Time {
	if l.none() {
		return time.Time{}
	}
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	now := l.t.c.now()
	return now.mono.Add(l.t.term.left(now))
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
	case t.claim.maxHold > 0 && t.since.since(t.c.now()) >= t.claim.maxHold-t.claim.marginOf(t.claim.TTL):
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
		why.Until = now.mono.Add(t.term.leaseLeft(now) + t.claim.LockDelay)
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
	t.c.renewer.remove(t)
	t.c.inboxes.of(t.claim.Token).remove(t.claim)
	if t.spare(why.Fence) > 0 {
		t.c.queues.Drop(t.claim.Name, t, now.mono)
	}
	if l != nil {
		l.tellEnd(l.lossAside(&why))
	}
}

// wire is how the backend is told which lease is meant, and how long it shall last: its TTL, or what is left
// until its maximum hold.
func (t *hold) wire(now reading) driver.LeaseRef {
	ttl := t.claim.TTL
	if t.claim.maxHold > 0 {
		ttl = min(ttl, t.claim.maxHold-t.since.since(now))
	}
	return driver.LeaseRef{Name: t.claim.Name, Token: t.claim.Token, TTL: ttl}
}
