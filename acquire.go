package pawl

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
)

// acquire gets a lease from the backend, or from a holder of this process.
func (c *core) acquire(ctx context.Context, cl *claim, m mode) (*Lease, error) {
	var w *waiter
	now := c.now()
	switch m {
	case trying:
		if err := c.queues.CheckTry(&cl.Claim); err != nil {
			return nil, err
		}
	case forcing:
		cl.Force = true
	case waiting:
		cl.Queue = true
		w = &cl.waiter
		c.queues.Enter(w, &cl.Claim, cl, now.Mono)
		if w.Turn() != nil {
			if lease, err := c.awaitTurn(ctx, w); lease != nil || err != nil {
				return lease, err
			}
			now = c.now()
		}
	}

	a := attempts{c: c, ctx: ctx, claim: cl, waiter: w, margin: cl.marginOf(cl.TTL), queueTTL: cl.QueueTTL}
	defer a.dropUngranted()
	h, now, err := a.run(now)
	if err == nil && !c.startRenewing(h, now) {
		// Close has begun without knowing this hold, so Close would not end it.
		c.releaseUnknown(cl)
		err = ErrClosed
	}
	if err != nil {
		return nil, err
	}
	a.granted = true
	return c.beginLease(w, h, now), nil
}

// beginLease makes the first lease of a hold. From here on the lease may be lost at any
// moment.
func (c *core) beginLease(w *waiter, h *hold, now clock.Reading) *Lease {
	inDoubt := c.inboxes.SetHold(h.claim.Token, &h.claim.inbox, h)
	lease := h.grant(now)
	if check := h.claim.health; check != nil {
		c.runInBackground(func() { lease.watchHealth(check) })
	}
	c.queues.Granted(h.claim.Name, w, h, h.passesLeft(lease.fence), now.Mono)
	if inDoubt {
		c.renewals.Check(now.Mono, &h.renewal)
	}
	return lease
}

// announce reports to the Observer that a lease was acquired. If the lease has ended
// meanwhile, announce then reports the end.
func (l *Lease) announce(waited time.Duration) {
	o, returned := l.h.c.observer, false
	defer func() {
		l.h.mu.Lock()
		ending := l.pendingEnd
		l.announced = true
		l.h.mu.Unlock()
		if !returned { // the Observer panicked, or ended the goroutine, so no caller gets this lease
			defer l.ReleaseUnused(l.claim.ctx) //nolint:errcheck // the Observer gets the error of a failing backend
		}
		if ending != nil {
			ending()
		}
	}()
	if o.Acquired != nil {
		o.Acquired(AcquiredEvent{l.claim.event(l.claim.ctx), l, waited})
	}
	returned = true
}

// awaitTurn waits in the local queue until w may ask the backend, or a holder passes a
// lease to w.
func (c *core) awaitTurn(ctx context.Context, w *waiter) (*Lease, error) {
	stillWaiting := true
	defer func() {
		// If the waiter gives up, or the Observer panics, a lease that a holder passed to
		// the waiter in that instant goes on to the next waiter.
		if stillWaiting && w.Leave(c.now().Mono) {
			_ = w.Claim.passedLease.Release(ctx)
		}
	}()
	c.reportPlace(w)
	select {
	case <-w.Turn():
		// If ctx has ended, w does not use its turn to ask the backend. Otherwise each of
		// many waiters that give up at the same time would ask.
		if w.Claim.passedLease != nil || w.Err() != nil || ctx.Err() == nil {
			stillWaiting = false
			return w.Claim.passedLease, w.Err()
		}
	case <-c.closing.Done():
		return nil, ErrClosed
	case <-ctx.Done():
	}
	var lastErr error
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		lastErr = w.WaitReason()
	}
	return nil, gaveUp(ctx, w.Claim.Name, lastErr)
}

// reportPlace reports to the Observer that w waits behind other claims of this process.
func (c *core) reportPlace(w *waiter) {
	if c.observer == nil || c.observer.Queued == nil {
		return
	}
	if held, ok := errors.AsType[*driver.HeldError](w.WaitReason()); ok {
		c.observer.reportQueued(w.Claim, held)
	}
}
