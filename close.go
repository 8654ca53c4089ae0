package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// closeTimeout is the time for which Close waits for the backend. Shutdown waits as
	// long if its ctx has no deadline.
	closeTimeout = 15 * time.Second
	// lastRoundTimeout is the longest time that the last round of releases may take.
	lastRoundTimeout = time.Second
	// silenceTimeout is the longest wait of Close while the backend answers no request.
	silenceTimeout = 1300 * time.Millisecond
	// progressInterval is the interval at which Close looks for an answer.
	progressInterval = 100 * time.Millisecond
	// driverCloseTimeout is the least time that the driver gets to close, however late it
	// begins.
	driverCloseTimeout = 600 * time.Millisecond
	// silentCloseTimeout is the time that Close takes if the backend is silent: the sum
	// of the four constants right above.
	silentCloseTimeout = 3 * time.Second
)

// Close ends the client. It takes these steps, in this order: it refuses new claims;
// waiters leave the queue and get ErrClosed; holders lose their leases with ReasonClosed;
// it releases these leases; it ends the client's goroutines; it closes the driver.
// [Client.Shutdown] lets the holders finish first, and takes a bound.
//
// Close waits 15 s at most for the backend, and 1.3 s while the backend answers nothing.
// Then it sends each outstanding release once more, and waits one second for the answers
// and 0.6 s for the driver. So it ends within 3 s if the server is gone. A lease whose
// release is still not confirmed expires after its TTL; the error is then a [*CloseError]
// with the number of such leases. A second Close waits for the first, and returns the
// same.
//
// Within the 15 s, Close also waits for each request whose caller gave up, because the
// backend may still grant the claim. Close releases such a claim at once, and again when
// its request has ended. So Close may take Options.RequestTimeout and 250 ms even with a
// backend that works.
func (c *Client) Close() error { return c.close(context.Background()) }

// close is Close with a ctx, whose deadline replaces closeTimeout. A request whose
// caller gave up may still take effect. If ctx ends before that becomes impossible, close
// releases the claim only once, and counts it as not confirmed.
func (c *Client) close(ctx context.Context) error {
	if err := c.checkClosable(); err != nil {
		return err
	}
	began := time.Now()
	bound, cancel := context.WithCancel(ctx)
	if _, bounded := ctx.Deadline(); !bounded {
		bound, cancel = context.WithDeadline(ctx, began.Add(closeTimeout))
	}
	defer cancel()
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if !first {
		select {
		case <-c.done:
			return c.answer
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	claimsEnded := c.refuseClaims()
	held := c.renewals.Stop() // before releases.shut: a Release that shut refuses leaves its lease to Close
	releasesEnded := c.releases.shut()
	c.returner.CountGivenUp()
	for _, h := range held {
		now := c.now()
		h.lose(LostError{Reason: ReasonClosed, StopBy: now.Mono})
		if !h.isGivenBack() { // otherwise its Release is under way, and would get ErrNoSuchLease
			c.returner.Add(h.newReturn(now.Mono))
		}
	}
	c.stopRenewing() // it also cancels renewals under way, which are not needed any more
	<-c.renewingEnded
	allEnded := make(chan struct{})
	go func() {
		defer close(allEnded)
		<-claimsEnded // first, because a call under way may still leave a claim to release
		<-releasesEnded
		c.mu.Lock()
		c.drained = true
		c.mu.Unlock()
		c.background.Wait()
		<-c.returner.Finish()
	}()
	drained := c.awaitAnswers(bound, allEnded)
	if !drained {
		cancel() // the driver gets no more time either
		c.returner.LastRound()
		select {
		case <-allEnded:
			drained = true
		case <-time.After(lastRoundTimeout):
		}
	}
	c.answer = c.unreleased(ctx, drained)
	c.stopListen()
	c.answer = cmp.Or(c.answer, c.closeDriver(began, bound.Done()))
	close(c.done)
	return c.answer
}

// checkClosable refuses to close a client that was not made, or a client of a namespace,
// which others share.
func (c *Client) checkClosable() error {
	if !c.isMade() {
		return errNotMade
	}
	if c.isNamespace {
		return invalid("Close", "was called on a client of Namespace", "Close of the client that it belongs to")
	}
	return nil
}

// awaitAnswers waits until allEnded is closed, and then returns true. It returns false
// when ctx ends, or if the backend gives no answer for silenceTimeout.
func (c *Client) awaitAnswers(ctx context.Context, allEnded <-chan struct{}) bool {
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	lastProgress := time.Now()
	for lastCalls, lastAnswers := 0, 0; ; {
		select {
		case <-allEnded:
			return true
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
		calls := c.claims.underWay() + c.releases.underWay() // a call ends when its request is answered
		answers, unanswered := c.returner.Progress()
		if calls != lastCalls || answers != lastAnswers || calls == 0 && !unanswered {
			lastProgress = time.Now()
		}
		lastCalls, lastAnswers = calls, answers
		if time.Since(lastProgress) >= silenceTimeout {
			c.returner.CutShort()
			return false
		}
	}
}

// closeDriver closes the driver. It waits for driverCloseTimeout, and then until timeUp
// is closed or silentCloseTimeout has passed since began, the start of Close.
func (c *Client) closeDriver(began time.Time, timeUp <-chan struct{}) error {
	closed := make(chan error, 1)
	go func() { closed <- c.driver.Close() }()
	timeout := time.After(silentCloseTimeout - time.Since(began))
	select {
	case err := <-closed:
		return err
	case <-time.After(driverCloseTimeout):
	}
	select {
	case err := <-closed:
		return err
	case <-timeUp:
	case <-timeout:
	}
	return unavailable(c.backend, "close", "", errNoAnswer)
}

// unreleased ends the releases, and returns a *CloseError unless all were confirmed.
// drained means that all calls have left and every lease is released. ctx is Close's.
func (c *Client) unreleased(ctx context.Context, drained bool) error {
	unreleased, failure := c.returner.Abandon()
	if !drained { // otherwise enter refuses each call that is still counted
		unreleased += c.claims.underWay() + c.releases.underWay() // the claims of these calls may be held
	}
	if unreleased == 0 {
		return nil
	}
	err := unavailable(c.backend, "release", "", cmp.Or(failure, errNoAnswer))
	if ended := ctx.Err(); ended != nil {
		err = ended
		if failure != nil {
			err = &endedError{ended, failure}
		}
	}
	return &CloseError{Unreleased: unreleased, Err: err}
}

// refuseClaims makes the client refuse new claims, and the waiting claims give up. The
// returned channel is closed when the last claim has left.
func (c *Client) refuseClaims() <-chan struct{} {
	ended := c.claims.shut()
	c.beginClosing()
	return ended
}

// Shutdown closes the client as Close does, but lets holders finish first. The client
// refuses new claims. Waiters leave the queue and get ErrClosed. The leader of an
// [Election] resigns: the context of its function ends, and Run returns ErrClosed after
// the function. The contexts of all other functions go on. Shutdown then waits until
// every lease is released or lost, and every function of Do, TryDo, [Once] and Election
// has returned. Meanwhile the client renews the leases. Then Shutdown closes the client.
//
// ctx bounds all of that. When ctx ends, the holders lose the remaining leases with
// ReasonClosed, and the error matches ctx's. A Close that is called meanwhile ends the
// leases at once; a second Shutdown waits for the first. A holder that waits for Shutdown
// deadlocks.
func (c *Client) Shutdown(ctx context.Context) error {
	if err := c.checkClosable(); err != nil {
		return err
	}
	if ctx == nil {
		ctx = context.Background()
	}
	waitErr := c.awaitHolders(ctx)
	return errors.Join(waitErr, c.close(ctx))
}

// awaitHolders waits until no claim is under way, then until no lease is held, then until
// no function of Do runs. It waits in this order, because a claim may become a lease, and
// a lease may be lost while its function runs.
func (c *Client) awaitHolders(ctx context.Context) error {
	if !closedInTime(ctx, c.refuseClaims()) {
		return fmt.Errorf("pawl: shutdown: %w, and claims were still under way", ctx.Err())
	}
	if !closedInTime(ctx, c.renewals.Empty()) {
		return fmt.Errorf("pawl: shutdown: %w, and %s still held", ctx.Err(), countWas(c.renewals.Len(), "lease"))
	}
	if !closedInTime(ctx, c.functions.shut()) {
		return fmt.Errorf("pawl: shutdown: %w, and a function whose lease was lost still ran", ctx.Err())
	}
	return nil
}

// closedInTime waits for c, and no longer than ctx. If c is closed already, it returns
// true even if ctx has ended.
func closedInTime(ctx context.Context, c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
	}
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}
