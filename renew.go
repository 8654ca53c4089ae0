package pawl

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
	"github.com/pawl-go/pawl/internal/keepalive"
	"github.com/pawl-go/pawl/internal/lazyctx"
)

// startRenewing makes the client renew h. It returns false if the client closes.
func (c *core) startRenewing(h *hold, now clock.Reading) bool {
	h.mu.Lock()
	term := h.term
	h.mu.Unlock()
	return c.renewals.Add(&h.renewal, h, h.claim.TTL, keepalive.RenewIn(term.TTL(), term.Since(now), term.Left(now)), now.Mono)
}

// waitForRenewal waits until no renewal of h is under way, or ctx ends.
func (c *core) waitForRenewal(ctx context.Context, h *hold) {
	idle := c.renewals.Idle(&h.renewal)
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// handleSignal handles a signal. The driver calls it, so it must not block.
func (c *core) handleSignal(s driver.Signal) {
	if s.Token.IsZero() {
		c.inboxes.PutAll(s)
		c.renewals.Check(c.now().Mono)
		return
	}
	for _, h := range c.inboxes.Put(s) {
		if s.Kind != driver.SignalGranted {
			c.renewals.Check(c.now().Mono, &h.renewal)
		}
	}
}

// keepRenewing renews all leases of a client and ends those whose term is over, until ctx
// ends. It uses one goroutine, however many leases there are, and one more for each
// request under way. Package keepalive decides which leases are due, and which share a
// request.
func (c *core) keepRenewing(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := c.now()
		expired, next := c.renewals.Due(now)
		for _, h := range expired {
			h.expire()
		}
		if wait := c.dispatchRenewals(ctx, now.Mono); wait >= 0 {
			next = min(next, wait)
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-c.renewals.Wake():
		}
	}
}

// dispatchRenewals sends the batches that are due, each in a goroutine of its own, so
// that a request without an answer delays no other. It returns the time until the next
// batch may be due. A negative time means: wait for Wake.
func (c *core) dispatchRenewals(ctx context.Context, now time.Time) (wait time.Duration) {
	for {
		due, batch, wait := c.renewals.Take(now)
		if batch == nil {
			return wait
		}
		c.runInBackground(func() { c.renew(ctx, due, batch) })
	}
}

// renew makes one request, for the leases that are due.
func (c *core) renew(ctx context.Context, due []*renewal, batch *keepalive.Batch) {
	sent := c.now()
	leases := make([]driver.LeaseRef, len(due))
	shortestTTL := driver.MaxTTL // the claims' shortest TTL; a renewal asks for less near the end of a maximum hold
	for i, x := range due {
		leases[i] = x.Lease.renewalRef(sent)
		shortestTTL = min(shortestTTL, x.Lease.claim.TTL)
	}
	attempt := lazyctx.WithDeadline(ctx, sent.Mono.Add(c.settings.renewTimeout(shortestTTL, batch.IsRetry() && len(due) > 1)))
	answers, err := c.driver.Renew(attempt, leases)
	attempt.Cancel()
	if err == nil && len(answers) != len(due) {
		err = errors.New("the driver did not answer for every lease")
	}
	if err != nil {
		err = unavailable(c.backend, "renew", leases[0].Name, err)
	}
	if err != nil && ctx.Err() == nil { // otherwise Close has ended the request
		c.reportFailedInBackground(failureEvent(due), "renew", len(due), err)
	}
	now := c.now()
	for i, x := range due {
		answer, failed := err, len(due)
		if err == nil {
			if answer, failed = answers[i], 0; answer != nil {
				failed = 1 // only this lease
			}
		}
		left := x.Lease.applyRenewal(sent, now, leases[i].TTL, answer)
		c.renewals.ScheduleNext(x, batch, failed, left, now.Mono)
		if errors.Is(answer, driver.ErrNoSuchLease) {
			x.Lease.lose(reportedLoss(sent.Mono, answer))
		}
	}
	c.renewals.Done(batch, now.Mono, err == nil)
}

// failureEvent returns the event for a failed renewal. If the batch has only one lease,
// it is the event of that lease.
func failureEvent(due []*renewal) Event {
	if len(due) > 1 {
		return Event{Ctx: context.Background(), Name: due[0].Lease.claim.Name}
	}
	return due[0].Lease.currentClaim().lateEvent()
}

// Confirm renews the lease, and returns nil if the lease still holds the name. The error
// matches ErrLost or ErrReleased if the lease is over. It matches ErrUnavailable, or
// ctx's own error, if Confirm cannot find out; the lease then goes on until its Deadline.
//
// Call it right before something that cannot be undone. It takes a round trip, where Err
// takes none, and detects what the backend has not reported yet: a ForceLock, a Break
// with a negative Delay, an entry that was deleted by hand. Its answer may be outdated
// when a transaction commits, because the process may pause in between: in a transaction
// use CheckLease of postgreslock, mysqllock or sqlitelock.
func (l *Lease) Confirm(ctx context.Context) error { return l.renewAlone(ctx, "renew", nil) }

// renewAlone renews this lease alone, with or without a value to write.
func (l *Lease) renewAlone(ctx context.Context, op Op, value []byte) error {
	if err := l.Err(); err != nil {
		return err
	}
	h, c := l.h, l.h.c
	if err := c.checkOpen(ctx); err != nil {
		return err
	}
	if value != nil {
		w, err := l.takeWriteTurn(ctx)
		if err != nil {
			return err
		}
		defer w.endTurn()
	}
	if !c.releases.enter() { // as a Release does, so that Close waits for this call
		return ErrClosed
	}
	defer c.releases.leave()
	sent := c.now()
	ref := h.renewalRef(sent)
	ref.Value, ref.TTL = value, max(ref.TTL, driver.MinTTL) // near the end of a maximum hold, ref.TTL may be less
	attempt := c.settings.requestContext(ctx, nil, h.claim.TTL, sent.Mono)
	defer attempt.Cancel()
	answers, err := c.driver.Renew(attempt, []driver.LeaseRef{ref})
	if err == nil && len(answers) == 1 {
		err = answers[0]
	}
	switch {
	case err == nil:
		h.applyRenewal(sent, c.now(), ref.TTL, nil)
		return l.Err()
	case errors.Is(err, driver.ErrNoSuchLease):
		h.lose(reportedLoss(sent.Mono, err))
		return l.Err()
	case errors.Is(err, ErrInvalid) || errors.Is(err, ErrClosed):
		return err
	}
	if value != nil {
		h.writeState().end = attempt.Ends().Add(driver.MaxLead)
	}
	if ended := ctxErr(ctx); ended != nil {
		return ended
	}
	return unavailable(c.backend, op, h.claim.Name, err)
}

// writeState returns the state of the hold's writes. The first call creates it.
func (h *hold) writeState() *writeState {
	if w := h.writes.Load(); w != nil {
		return w
	}
	h.writes.CompareAndSwap(nil, &writeState{turn: make(chan struct{}, 1)})
	return h.writes.Load()
}

// takeWriteTurn waits until no other write of a value is under way, and no earlier one
// can reach the backend any more. The caller ends the turn with endTurn.
func (l *Lease) takeWriteTurn(ctx context.Context) (*writeState, error) {
	w := l.h.writeState()
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	err := l.sleep(ctx, time.Until(w.end))
	if err == nil {
		err = l.Err() // the lease may have been detached meanwhile
	}
	if err != nil {
		w.endTurn()
		return nil, err
	}
	return w, nil
}

func (w *writeState) endTurn() { <-w.turn }

// sleep waits for d, while the lease holds and ctx lasts.
func (l *Lease) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-l.Done():
		return l.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
