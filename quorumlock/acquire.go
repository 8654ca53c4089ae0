package quorumlock

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Acquire implements driver.Driver. It sends the claim to all nodes at once.
//
//   - If a majority grants it, these nodes agree on its fence (agree.go), and the claim
//     is granted.
//   - If a majority answers, and too many of these nodes refuse it, the error is a
//     HeldError. A try releases its grants. A claim that queues keeps its places and its
//     grants, unless the vote is split (split.go).
//   - If no majority can grant it, because too many nodes refuse it for the name's value,
//     the driver refuses it, and releases its grants and places (value.go).
//   - If no majority answers, the outcome is unknown, and the caller sends the claim
//     again or releases it. A try releases its grants, unless it was granted before.
func (d *quorum) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := d.beginOperation(ctx, c.Validate()); err != nil {
		return driver.Grant{}, err
	}
	defer d.work.Done()
	c.Value, c.ValueBelow = bytes.Clone(c.Value), bytes.Clone(c.ValueBelow)
	p, number, err := d.beginTurn(ctx, c)
	if err != nil {
		return driver.Grant{}, err
	}
	c = p.withTag(c)
	a := &attempt{d: d, claim: c, place: p, number: number, lateGrants: map[int]bool{}}
	began := time.Now()
	grant, err := a.run(ctx)
	if held, ok := errors.AsType[*driver.HeldError](err); ok {
		p.outdateSignals(held)
	}
	if !a.callerLeft {
		defer p.endTurn()
	}
	if err == nil {
		err = ctx.Err() // the caller has given up, and releases the claim or sends it again
	}
	if err != nil {
		return driver.Grant{}, err
	}
	d.holdings.recordGrant(c, a.votes, grant.Fence, began.Add(reliableTTL(grant.TTL)))
	d.places.leave(c.Token, c.Name)
	return grant, nil
}

// An attempt is one call of Acquire, or an agreement after signals (signals.go).
type attempt struct {
	d          *quorum
	claim      driver.Claim
	place      *place
	number     int        // its number among the attempts at the place
	callerLeft bool       // the caller's ctx has ended, and conclude goes on without it
	votes      grantVotes // of the last claim on the nodes

	mu          sync.Mutex   // protects the fields below
	void        bool         // release grants that arrive from now on
	callerWaits bool         // the attempt returned "held", and the caller waits
	lateGrants  map[int]bool // nodes that granted, or may have granted, before void was set; votes may lack them
}

func (a *attempt) run(ctx context.Context) (driver.Grant, error) {
	votes := a.claimOnNodes(ctx)
	a.votes = votes
	if succeeded(votes) >= a.d.majority {
		grant, err := a.conclude(ctx, votes)
		if err != nil && !a.callerLeft && (isHeld(err) || !a.claim.Queue) {
			a.releaseGrants(ctx, votes)
		}
		return grant, err
	}
	if err := a.refusedForValue(votes); err != nil {
		a.d.places.leave(a.claim.Token, a.claim.Name)
		a.releaseOnNodes(ctx, func(int) bool { return true }) // the places, too
		return driver.Grant{}, err
	}
	if succeeded(votes)+count(votes, isRefusal) < a.d.majority || count(votes, isHeld) == 0 {
		err := failuresErr(ctx, a.d, "acquire", a.claim.Name, votes)
		if _, shown := a.d.holdings.find(a.claim.Token, a.claim.Name); !a.claim.Queue && !shown {
			a.releaseGrants(ctx, votes)
		}
		return driver.Grant{}, err
	}
	retryAfter := time.Duration(0)
	if a.claim.Queue {
		retryAfter = a.yieldIfSplit(ctx, votes)
		if a.beginWait(votes) {
			retryAfter = time.Millisecond
		}
	} else {
		a.releaseGrants(ctx, votes)
	}
	return driver.Grant{}, a.d.refusal(a.claim, votes, retryAfter)
}

// claimOnNodes sends the claim to all nodes, with the fence that all should grant.
func (a *attempt) claimOnNodes(ctx context.Context) grantVotes {
	d := a.d
	sent := d.now()
	proposal, newTicket := a.claim, d.ticket()
	proposal.MinFence = uint64(max(sent.UnixMicro()+d.fenceLead.Load(), 1))
	votes := poll(ctx, d, pollRequest[driver.Grant]{
		nodes: d.allNodes, token: a.claim.Token,
		send: func(ctx context.Context, i int) (driver.Grant, error) {
			c := proposal
			c.Ticket = a.place.ticket(i, newTicket)
			return d.sendClaim(ctx, i, c)
		},
		decided: func(votes grantVotes) bool {
			yes, no, missing := succeeded(votes), count(votes, isRefusal), len(votes)-answered(votes)
			return yes >= d.majority || yes+missing < d.majority && (yes+no >= d.majority || yes+no+missing < d.majority)
		},
		onAnswer: a.recordAnswer,
		onDone:   a.handleLateGrant,
	})
	d.adjustFenceLead(sent, votes)
	return votes
}

// sendClaim waits until no release of the claim can arrive at a node any more, and sends
// the claim to the node.
func (d *quorum) sendClaim(ctx context.Context, i int, c driver.Claim) (driver.Grant, error) {
	k := nodeClaim{i, c.Token, c.Name}
	if err := d.pending.awaitClaimable(ctx, k); err != nil {
		return driver.Grant{}, err
	}
	if d.nodes[i].FenceRaiser != nil {
		c.Value = nil // see value.go
	}
	end := driver.End(ctx)
	grant, err := d.nodes[i].Acquire(ctx, c)
	if !isRefusal(err) && !isFinal(err) {
		d.pending.recordUnansweredAcquire(k, end)
	}
	return grant, err
}

// recordAnswer records the answer of a node. It also checks whether an earlier signal
// counts now.
func (a *attempt) recordAnswer(i int, v vote[driver.Grant]) {
	held, _ := errors.AsType[*driver.HeldError](v.err)
	a.place.recordAnswer(i, a.claim, a.number, v, held)
	if held != nil && a.claim.Queue {
		a.place.checkSignals()
	}
}

// adjustFenceLead adjusts the fenceLead: the time by which proposed fences are ahead of
// this client's clock. If the nodes granted different fences, it raises the lead to a
// little more than the lead of the fastest node's clock. Then the next proposal is higher
// than each node's own number. If a majority has granted the claim, all with the same
// fence, it reduces the lead slowly.
func (d *quorum) adjustFenceLead(sent time.Time, votes grantVotes) {
	var low, high uint64
	for _, grant := range values(votes) {
		if high = max(high, grant.Fence); low == 0 || grant.Fence < low {
			low = grant.Fence
		}
	}
	lead := d.fenceLead.Load()
	if low == high {
		if succeeded(votes) >= d.majority { // fewer grants say too little about the clocks
			d.fenceLead.CompareAndSwap(lead, lead-lead/256)
		}
		return
	}
	if ahead := int64(high) - sent.UnixMicro(); ahead > lead && ahead <= driver.MaxLead.Microseconds() {
		// Otherwise the clocks are not the cause of the difference.
		d.fenceLead.CompareAndSwap(lead, min(ahead+ahead/4+50, driver.MaxLead.Microseconds()))
	}
}

// handleLateGrant handles a grant that arrives late: if the attempt is void, it releases
// the grant.
func (a *attempt) handleLateGrant(i int, v vote[driver.Grant]) {
	if !mayHold(v) {
		return
	}
	a.mu.Lock()
	void, callerWaits := a.void, a.callerWaits
	if !void {
		a.lateGrants[i] = true
	}
	a.mu.Unlock()
	switch {
	case void:
		a.d.pending.release(i, a.lease())
	case v.err != nil:
	case callerWaits: // its answer lacks this vote, so make it claim again
		a.d.listeners.Notify(driver.Signal{Kind: driver.SignalRetry, Token: a.claim.Token})
	case a.claim.Value == nil: // otherwise the node lacks the value, and a repair writes it
		a.d.holdings.recordFence(a.lease(), i, v.value.Fence)
	}
}

// beginWait marks the beginning of the caller's wait. It reports whether a grant that
// votes lack has arrived meanwhile. From then on, handleLateGrant signals late grants.
func (a *attempt) beginWait(votes grantVotes) (missed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.callerWaits = true
	for i := range a.lateGrants {
		missed = missed || !votes[i].answered()
	}
	return missed
}

// releaseGrants releases the grants of the nodes, including uncertain grants. It waits
// only for nodes that answer quickly. handleLateGrant releases grants that arrive later.
//
// A node that refused has at most a place of the token in its queue. That place stays,
// because the attempt may be a waiter's try.
func (a *attempt) releaseGrants(ctx context.Context, votes grantVotes) {
	a.releaseOnNodes(ctx, func(i int) bool { return a.lateGrants[i] || mayHold(votes[i]) })
}

// releaseOnNodes releases the token's grant or place on the nodes for which include
// returns true. It locks a.mu while it calls include.
func (a *attempt) releaseOnNodes(ctx context.Context, include func(i int) bool) {
	a.mu.Lock()
	a.void = true
	nodes := slices.DeleteFunc(slices.Clone(a.d.allNodes), func(i int) bool { return !include(i) })
	a.mu.Unlock()
	a.forgetGrants(nodes)
	a.d.releaseFailedClaim(ctx, a.lease(), nodes)
}

// forgetGrants drops the grants of these nodes from the driver's records. It is called
// before they are released.
func (a *attempt) forgetGrants(nodes []int) {
	if len(nodes) > 0 {
		a.place.forgetGrants(nodes)
		a.d.holdings.clearSureUntil(a.claim.Token, a.claim.Name)
	}
}

func (a *attempt) lease() driver.LeaseRef {
	return driver.LeaseRef{Name: a.claim.Name, Token: a.claim.Token, TTL: a.claim.TTL}
}

// mayHold reports whether a node with this answer may have granted the claim.
func mayHold(v vote[driver.Grant]) bool {
	return v.answered() && !isRefusal(v.err) && !errors.Is(v.err, driver.ErrInvalid)
}
