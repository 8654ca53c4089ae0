package quorumlock

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// conclude turns the votes of a majority into a grant or an error. It makes the nodes
// agree on a fence, counts permits, and writes the value. Each of these steps can take a
// round trip or more, so the ctx of each attempt may end too early. If the claim queues,
// and is not forced, conclude therefore goes on after ctx has ended, and signals the
// result, which the next attempt returns.
func (a *attempt) conclude(ctx context.Context, votes grantVotes) (driver.Grant, error) {
	if grant, ok := a.concluded(votes); ok {
		return grant, nil
	}
	if a.claim.Force || !a.claim.Queue {
		return a.settleVotes(ctx, votes)
	}
	type result struct {
		grant driver.Grant
		err   error
	}
	results := make(chan result) // unbuffered, so that either the caller or a signal gets the result
	err := a.settleInBackground(ctx, votes, func(backgroundCtx context.Context, grant driver.Grant, err error) {
		select {
		case results <- result{grant, err}:
		case <-ctx.Done():
			a.signalResult(backgroundCtx, votes, grant, err)
		}
	})
	if err != nil {
		return driver.Grant{}, err
	}
	select {
	case r := <-results:
		return r.grant, r.err
	case <-ctx.Done():
		a.callerLeft = true
		return driver.Grant{}, ctx.Err()
	}
}

// concluded returns the grant if the nodes already agree, and no other step is needed.
func (a *attempt) concluded(votes grantVotes) (driver.Grant, bool) {
	grant, agreed := a.d.agreed(votes)
	return grant, agreed && !a.claim.Force && !needsRecount(a.claim) && a.claim.Value == nil
}

// settleInBackground passes the result of settleVotes to a function, in another
// goroutine. It returns an error if ctx has ended, or the driver is closed.
func (a *attempt) settleInBackground(ctx context.Context, votes grantVotes, onResult func(context.Context, driver.Grant, error)) error {
	d := a.d
	if err := d.beginOperation(ctx); err != nil {
		return err
	}
	go func() {
		defer d.work.Done()
		backgroundCtx, cancel := context.WithTimeout(d.requestsCtx, a.claim.QueueTTL)
		defer cancel()
		grant, err := a.settleVotes(backgroundCtx, votes)
		onResult(backgroundCtx, grant, err)
	}()
	return nil
}

// settleVotes computes the grant or the error from the votes of a majority.
func (a *attempt) settleVotes(ctx context.Context, votes grantVotes) (driver.Grant, error) {
	getGrant := a.agree
	if a.claim.Force {
		getGrant = a.holdMajority
	}
	grant, err := getGrant(ctx, votes)
	if err == nil && needsRecount(a.claim) {
		err = a.recount(ctx, grant)
	}
	if err == nil {
		err = a.writeValue(ctx, votes, grant)
	}
	return grant, err
}

// signalResult signals the result if no caller waits for it, and ends the turn at the
// place. If the claim was refused, it releases the grants, and waits a little before the
// signal.
//
// A client relies on SignalGranted for the QueueTTL. But a node that granted in its
// answer keeps the lease for the TTL. So if the TTL is shorter, the client gets
// SignalRetry instead, and its next attempt gets the grant.
func (a *attempt) signalResult(ctx context.Context, votes grantVotes, grant driver.Grant, err error) {
	d := a.d
	signal := driver.Signal{Kind: driver.SignalGranted, Token: a.claim.Token, Fence: grant.Fence, Fences: grant.Fences}
	if err != nil || a.claim.TTL < a.claim.QueueTTL {
		signal = driver.Signal{Kind: driver.SignalRetry, Token: a.claim.Token}
	}
	if err != nil {
		if isHeld(err) {
			a.releaseGrants(ctx, votes)
			_ = backoff.Wait(ctx, backoff.Random(20*time.Millisecond))
		}
		votes = nil
	}
	if a.place.recordAgreement(votes, grant.Fence) {
		d.listeners.Notify(signal)
	}
	a.place.endTurn()
}
