package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// closePatience is how long Close waits for the backend, and Shutdown if its ctx does
	// not say.
	closePatience = 15 * time.Second
	// lastPatience is how much longer the last round of releases may take, when its ctx
	// is over.
	lastPatience = time.Second
)

// Close ends the client, in this order. New claims are refused. Waiters leave the queue
// and get ErrClosed. Leases are lost with ReasonClosed, so that their holders stop, and
// are released. The client's goroutines end. The driver is closed. [Client.Shutdown] lets
// the holders finish first.
//
// Close waits for the backend for 15 s at the most. When that is over, it sends each
// outstanding release once more, waits a second for the answers, and another for the
// driver. What is still not confirmed expires by itself: then the error is a
// [*CloseError] with the number. A second Close waits for the first, and returns the
// same. For another bound, or one that a program is given, see [Client.Shutdown].
//
// Within that bound, Close also waits until nothing can come any more of a request that
// was given up, by a caller whose ctx ended, say: such a claim is released at once, and
// once more when its request has ended. So Close of a client that is well may take as
// long as a request may, Options.RequestTimeout, and 250 ms.
func (c *Client) Close() error { return c.close(context.Background()) }

// close is Close, bounded by ctx too. A ctx that ends before the last request that was
// given up leaves its release out, and the claim is counted among those not confirmed.
func (c *Client) close(ctx context.Context) error {
	if err := c.closable(); err != nil {
		return err
	}
	bound, cancel := ctx, context.CancelFunc(func() {})
	if _, bounded := ctx.Deadline(); !bounded {
		bound, cancel = context.WithTimeout(ctx, closePatience)
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
	claimed := c.refuse()
	held := c.renewals.Stop() // before releases are shut: one that is refused leaves its lease to us
	released := c.releases.shut()
	c.returner.returns.Closing()
	for _, h := range held {
		now := c.now()
		h.lose(LostError{Reason: ReasonClosed, Until: now.Mono})
		if !h.givenBack() { // else its Release is under way, and would be told that it was not held
			c.returner.add(h.toReturn(now.Mono), now.Mono)
		}
	}
	c.stopRun() // also those renewals that are under way, for nobody needs them
	<-c.ran
	c.answer = c.drain(ctx, bound.Done(), claimed, released)
	c.stopListen()
	if err := c.closeDriver(bound.Done()); c.answer == nil {
		c.answer = err
	}
	close(c.done)
	return c.answer
}

// closable refuses to close what is not made, and a namespace, which others share.
func (c *Client) closable() error {
	if !c.made() {
		return errNotMade
	}
	if c.view {
		return &InvalidError{What: "Close", Problem: "is called of what Namespace returned", Allowed: "the client that it was made from"}
	}
	return nil
}

// closeDriver closes the driver. One that waits for a backend that does not answer is
// left to that when Close may take no longer.
func (c *Client) closeDriver(enough <-chan struct{}) error {
	closed := make(chan error, 1)
	go func() { closed <- c.driver.Close() }()
	patience := time.NewTimer(lastPatience)
	defer patience.Stop()
	select {
	case err := <-closed:
		return err
	case <-patience.C:
	}
	select {
	case err := <-closed:
		return err
	case <-enough:
	}
	return unavailable(c.backend, "close", "", errNoAnswer)
}

// drain waits until calls have left and everything is given back; no longer than enough,
// which is closed when ctx ends, or before.
func (c *Client) drain(ctx context.Context, enough, claimed, released <-chan struct{}) error {
	over := make(chan struct{})
	go func() {
		defer close(over)
		<-claimed // first: a call under way may still leave something to undo
		<-released
		c.mu.Lock()
		c.drained = true
		c.mu.Unlock()
		c.background.Wait()
		<-c.returner.finish()
	}()
	drained := true
	select {
	case <-over:
	case <-enough:
		drained = c.lastRound(over)
	}
	unreleased, failure := c.returner.abandon()
	if !drained { // else whoever is counted as in is just being refused
		unreleased += c.claims.in() + c.releases.in() // they may still be granted
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

// lastRound has everything released once more, and waits a little for the answers. It
// reports whether all is over.
func (c *Client) lastRound(over <-chan struct{}) bool {
	c.returner.lastRound()
	patience := time.NewTimer(lastPatience)
	defer patience.Stop()
	select {
	case <-over:
		return true
	case <-patience.C:
		return false
	}
}

// refuse takes no more claims, and has those that wait give up. What it returns is closed
// when the last is over.
func (c *Client) refuse() <-chan struct{} {
	claimed := c.claims.shut()
	c.refused.Do(func() { close(c.closing) })
	return claimed
}

// Shutdown closes the client as Close does, but lets holders finish first. New claims are
// refused. Waiters leave the queue and get ErrClosed. Leases are renewed until they are
// released or lost, and the functions of Do and its kin have returned. Then the client is
// closed.
//
// ctx bounds all of that. When it ends, the remaining leases are taken away as by Close,
// and the error matches ctx's. A Close that is called meanwhile takes the leases away at
// once; a second Shutdown waits for the first. A holder that waits for Shutdown
// deadlocks.
func (c *Client) Shutdown(ctx context.Context) error {
	if err := c.closable(); err != nil {
		return err
	}
	if ctx == nil {
		ctx = context.Background()
	}
	late := c.finish(ctx)
	return errors.Join(late, c.close(ctx))
}

// finish waits until nothing is held, and nobody works under what was. It goes in this
// order: a claim that is under way may become a lease, and a lease may be lost while its
// function runs.
func (c *Client) finish(ctx context.Context) error {
	if !over(ctx, c.refuse()) {
		return fmt.Errorf("pawl: shutdown: %w, and claims were still under way", ctx.Err())
	}
	if !over(ctx, c.renewals.Empty()) {
		what := "1 lease was"
		if n := c.renewals.Len(); n != 1 {
			what = fmt.Sprintf("%d leases were", n)
		}
		return fmt.Errorf("pawl: shutdown: %w, and %s still held", ctx.Err(), what)
	}
	if !over(ctx, c.functions.shut()) {
		return fmt.Errorf("pawl: shutdown: %w, and a function still ran whose lease was lost", ctx.Err())
	}
	return nil
}

// over waits for c, and no longer than ctx. What is over already is so also when ctx is.
func over(ctx context.Context, c <-chan struct{}) bool {
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
