package quorumlock

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/pause"
)

// conclude finds out what the votes of a majority amount to: the nodes have to agree on a
// fence, permits are counted, and a value is written. That takes up to three round trips
// more, and the time that a caller gives one attempt may be too short for them, each time
// anew. So for a claim that queues it goes on when ctx has ended, and what comes of it is
// signalled; the next attempt finds it done.
func (a *attempt) conclude(ctx context.Context, votes ballots) (driver.Grant, error) {
	d := a.d
	if a.claim.Force || !a.claim.Queue {
		return a.amount(ctx, votes)
	}
	if grant, ok := d.agreed(votes); ok && !counts(a.claim) && a.claim.Value == nil {
		return grant, nil
	}
	if err := d.begin(ctx); err != nil {
		return driver.Grant{}, err
	}
	type result struct {
		grant driver.Grant
		err   error
	}
	results := make(chan result, 1)
	go func() {
		defer d.work.Done()
		ctx, cancel := context.WithTimeout(d.life, a.claim.QueueTTL)
		defer cancel()
		grant, err := a.amount(ctx, votes)
		a.mu.Lock()
		a.found = true
		left := a.left
		a.mu.Unlock()
		if left {
			a.say(ctx, votes, grant, err)
		}
		results <- result{grant, err}
	}()
	select {
	case r := <-results:
		return r.grant, r.err
	case <-ctx.Done():
	}
	a.mu.Lock()
	a.left = !a.found
	a.mu.Unlock()
	return driver.Grant{}, ctx.Err()
}

// amount is what the votes of a majority amount to.
func (a *attempt) amount(ctx context.Context, votes ballots) (driver.Grant, error) {
	get := a.agree
	if a.claim.Force {
		get = a.hold
	}
	grant, err := get(ctx, votes)
	if err == nil && counts(a.claim) {
		err = a.recount(ctx, grant)
	}
	if err == nil {
		err = a.write(ctx, votes, grant)
	}
	return grant, err
}

// say tells the listeners what votes amount to for which nobody waits in a call, and ends
// the turn at the place. A claim that is refused gives back what it has, and asks again a
// little later.
//
// A client that hears "granted" trusts it for the QueueTTL. Votes that were answers last
// for a TTL; if that is less, it has to ask, and finds that they have agreed.
func (a *attempt) say(ctx context.Context, votes ballots, grant driver.Grant, err error) {
	d := a.d
	said := driver.Signal{Kind: driver.SignalGranted, Token: a.claim.Token, Fence: grant.Fence, Fences: grant.Fences}
	if err != nil || a.claim.TTL < a.claim.QueueTTL {
		said = driver.Signal{Kind: driver.SignalLook, Token: a.claim.Token}
	}
	if err != nil {
		if errors.Is(err, driver.ErrHeld) {
			a.takeBack(ctx, votes)
			_ = pause.For(ctx, backoff.Below(20*time.Millisecond))
		}
		votes = nil
	}
	if a.place.passed(votes, grant.Fence) {
		d.heard.Notify(said)
	}
	a.place.done()
}
