package pawl

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/internal/clock"
)

// How a lease ends: its holder, the Observer and the lists of this process are told.

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
func (h *hold) lose(why LostError) {
	h.mu.Lock()
	if h.lost != nil {
		h.mu.Unlock()
		return
	}
	now := h.c.now()
	why.Name, why.Fence, why.Err = h.claim.Name, h.next-1, notOfTheCaller(why.Err)
	if why.StopBy.IsZero() {
		// No request has ended the lease in the backend. The backend keeps it for the
		// rest of the TTL, and then keeps the name closed for the lock-delay.
		why.StopBy = now.Mono.Add(h.term.LeaseLeft(now) + h.claim.LockDelay)
	}
	h.lost = &why
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
		l.reportEnd(l.lossReport(&why))
	}
}

// leave removes the hold from all lists of this process: the core does not renew it,
// check it or pass it on any more. Every end of a hold calls leave.
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

// finish ends the lease for the given reason, and returns nil. If the lease was over
// before, finish returns the earlier reason.
func (l *Lease) finish(why error) error {
	l.h.mu.Lock()
	if l.over != nil {
		defer l.h.mu.Unlock()
		return l.over
	}
	l.over = why
	l.h.lease = nil
	l.h.releasing = why == ErrReleased || why == ErrDetached //nolint:errorlint // it is the reason as it was given
	cancel := l.cancel
	l.h.mu.Unlock()
	if cancel != nil { // not under the mutex: it runs functions that the user attached to the context
		cancel(why)
	}
	return nil
}

// reportEnd calls tell, which reports the end of a lease to the Observer. If announce has
// not reported the beginning yet, announce calls tell afterwards. tell may be nil.
func (l *Lease) reportEnd(tell func()) {
	l.h.mu.Lock()
	if !l.announced {
		l.pendingEnd, tell = tell, nil
	}
	l.h.mu.Unlock()
	if tell != nil {
		tell()
	}
}
