package pawl

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/lazyctx"
)

// Release ends the lease and lets the next claim in. Release may be called more than
// once, also at the same time: every call returns the same.
//
// ctx carries values only, and its end does not end Release: a holder whose ctx has ended
// must still be able to release. Release takes no longer than one request may take. Its
// error matches ErrLost if the lease was no longer held. Then other holders may have run
// at the same time. It matches ErrUnavailable if the backend did not confirm the release.
// Then the client retries in the background until the lease would have expired.
func (l *Lease) Release(ctx context.Context) error { return l.end(ctx, false) }

// ReleaseUnused is Release without the minimum hold ([WithMinHold]), for a holder that
// has not begun its work.
func (l *Lease) ReleaseUnused(ctx context.Context) error { return l.end(ctx, true) }

func (l *Lease) end(ctx context.Context, unused bool) error { return l.releaseWithin(ctx, nil, unused) }

// releaseWithin implements every release. It waits for the backend until the time limit
// of one request, or until bound ends. bound may be nil.
func (l *Lease) releaseWithin(ctx, bound context.Context, unused bool) error {
	if l.neverGranted() {
		return errNoLease
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if bound == nil {
		bound = lazyctx.WithoutCancel(ctx)
	}
	h, c := l.h, l.h.c
	entered := c.releases.enter()
	if entered {
		defer c.releases.leave() // Close waits for this call
	} else {
		h.lose(LostError{Reason: ReasonClosed, StopBy: c.now().Mono}) // Close releases the lease
	}
	if isReleased, answer := l.awaitFirstRelease(); isReleased {
		return answer
	}
	if unused {
		h.unused.Store(true)
	}
	answer := error(nil)
	returned := false
	defer func() {
		if !returned { // the driver panics, or ends the goroutine
			answer = unavailable(c.backend, "release", h.claim.Name, errCutShort)
		}
		l.setAnswer(answer)
		if c.observer != nil && !errors.Is(answer, ErrDetached) { // Detach has reported it
			l.reportRelease(ctx, answer)
		}
	}()
	answer = l.release(bound, entered)
	returned = true
	return answer
}

// awaitFirstRelease returns false to the first caller, which must then call setAnswer.
// For every later caller, it waits for the answer of the first Release, and returns true
// and the answer. Later callers wait on a channel, because virtual time stands still in a
// sync.Once.
func (l *Lease) awaitFirstRelease() (isReleased bool, answer error) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	switch l.phase {
	case unreleased:
		l.phase = releasing
		return false, nil
	case releasing:
		if l.ended == nil {
			l.ended = make(chan struct{})
		}
		ended := l.ended
		l.h.mu.Unlock()
		<-ended
		l.h.mu.Lock()
	case released:
	}
	return true, l.answer
}

func (l *Lease) setAnswer(answer error) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.phase, l.answer = released, answer
	if l.ended != nil {
		close(l.ended)
	}
}

var errCutShort = errors.New("the driver panicked, so the outcome is unknown")

// release ends the lease. If entered is false, Close gives the hold back.
func (l *Lease) release(bound context.Context, entered bool) error {
	h, c := l.h, l.h.c
	now := c.now()
	_ = l.checkTerm(now) // a lease whose term is over is lost, not released
	if lost := l.finish(ErrReleased); lost != nil {
		if errors.Is(lost, ErrDetached) {
			return lost // another process may have the lease now
		}
		// The backend may still keep the lost lease, for the margin or longer. So release
		// it, unless Close does: Close releases the leases that it has ended itself.
		if loss, ok := errors.AsType[*LostError](lost); entered || ok && loss.Reason != ReasonClosed {
			c.returner.Add(h.newReturn(now.Mono))
		}
		return lost
	}
	if h.passesLeft(l.fence) > 0 && c.queues.Pass(h.claim.Name, h, now.Mono) {
		return nil
	}
	err := h.giveBack(bound, now.Mono, l)
	c.wakeQueued(h.claim.Name)
	return err
}

// reportRelease reports the answer of the first Release to the Observer. It does not
// report a lease that was lost before, because the loss was reported.
func (l *Lease) reportRelease(ctx context.Context, err error) {
	l.h.mu.Lock()
	released := l.endReason == ErrReleased || l.endReason == ErrDetached //nolint:errorlint // the reason as given
	l.h.mu.Unlock()
	if !released {
		return
	}
	o, held := l.h.c.observer, time.Since(l.h.c.epoch)-l.beginOffset
	e := l.claim.event(context.WithoutCancel(ctx))
	lost, isLost := errors.AsType[*LostError](err)
	l.reportEnd(func() {
		switch {
		case isLost && o.Lost != nil:
			o.Lost(LostEvent{e, l, held, lost})
		case !isLost && o.Released != nil:
			defer o.Released(ReleasedEvent{e, l, held, err})
		}
		if err != nil && !isLost && err != ErrDetached { //nolint:errorlint // as above
			o.reportFailed(e, "release", 1, err)
		}
	})
}

// wakeQueued makes this process's queued waiter ask the backend at once for a name that
// this process has just released, if the backend does not push.
func (c *core) wakeQueued(name string) {
	if cl, ok := c.queues.Queued(name); ok && !c.pushesGrants() {
		_ = c.inboxes.Put(driver.Signal{Kind: driver.SignalRetry, Token: cl.Token})
	}
}

func (h *hold) giveBack(bound context.Context, sent time.Time, l *Lease) error {
	c := h.c
	h.removeFromLists(sent)
	attempt := c.settings.requestContext(bound, &h.request, h.claim.TTL, sent)
	defer attempt.Cancel()
	c.waitForRenewal(attempt, h) // so that no renewal reaches the backend after the release
	if attempt.Err() != nil {    // no time is left for an answer
		c.returner.Add(h.newReturn(sent))
		return unavailable(c.backend, "release", h.claim.Name, errNoAnswer)
	}

	answered := false
	defer func() { // even if the driver panics
		if !answered || h.claim.lateAttemptEnd > 0 {
			now := time.Now()
			c.returner.AddSent(h.newReturn(now), now, answered)
		}
	}()
	err := c.driver.Release(attempt, h.releaseRef())
	answered = err == nil || errors.Is(err, driver.ErrNoSuchLease)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, driver.ErrNoSuchLease):
		lost := reportedLoss(sent, err)
		lost.Name, lost.Fence = h.claim.Name, l.fence
		return &lost
	}
	return unavailable(c.backend, "release", h.claim.Name, err)
}
