package quorumlock

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// Each node has a queue of its own, and claims that are sent at about the same time reach
// the nodes in different orders. Each node grants a free name to the claim that arrives
// first. Then several claims may each have some nodes, and none a majority: the vote is
// split.
//
// Tickets have two uses. A claim's ticket decides its place in each queue (Claim.Ticket),
// so the queues of all nodes have the same order once the claim has reached all nodes.
// Tickets also decide among the claims that hold the name on some nodes, if none has a
// majority. Each of these claims yields all nodes on which an older one of them waits: it
// releases them, and queues there again with its ticket. Each node then grants to the
// next claim in its queue: the oldest claim, or one that yields again. The order is the
// same on all nodes, so the oldest claim never yields. If claims wait for each other, at
// least one of them yields.
//
// If the oldest claim has reached all nodes, each other claim yields once. So a split
// costs at most N*N reads and 2(N-1) requests on N nodes, however many claims wait. If
// the oldest claim has not reached all nodes, or a client's clock is off by more than
// half of driver.MaxLead, claims may yield several times. But each claim yields only to
// older claims, whose number is finite.

// ticketHeadStart is the time by which a ticket is earlier than its claim. A node accepts
// tickets from driver.MaxLead before the claim's arrival up to the arrival, on its own
// clock. So clocks may be off by half of MaxLead in either direction.
const ticketHeadStart = driver.MaxLead / 2

// ticket returns the ticket of a claim that is made now.
func (d *quorum) ticket() uint64 { return uint64(max(d.now().Add(-d.ticketLead).UnixMicro(), 1)) }

// A claim yields a node to a claim with a majority only once it has seen that claim for
// yieldToMajorityAfter: most leases are over by then, and a claim that has waited long
// loses its turn on a node that it yields. A claim younger than yieldAtOnceUntil yields
// at once, because the node still accepts its ticket.
const (
	yieldToMajorityAfter = 200 * time.Millisecond
	yieldAtOnceUntil     = (driver.MaxLead - ticketHeadStart) * 3 / 4
)

// yieldIfSplit is for a queued claim that some nodes have granted, but no majority. It
// yields nodes on which an older claim waits. It also yields nodes to a claim with a
// majority, whose lease is safer with more nodes. It updates votes, and returns the time
// until the next useful attempt, or 0 if the claim holds no node.
func (a *attempt) yieldIfSplit(ctx context.Context, votes grantVotes) (retryAfter time.Duration) {
	if succeeded(votes) == 0 {
		return 0
	}
	majorityClaim, nodes := a.nodesToYield(a.d.readEntries(ctx, a.claim.Name, a.d.hasMajority), votes)
	age, seenBefore := a.place.recordMajorityClaim(majorityClaim)
	blocked := majorityClaim != "" // claims with a majority leave no room for ours
	isYoung := a.d.ticket() < a.place.tag.ticket+uint64(yieldAtOnceUntil.Microseconds())
	switch {
	case len(nodes) > 0 && (!blocked || isYoung || age > yieldToMajorityAfter):
	case blocked:
		// Our grant is on a node that has missed the grant of the other claim. The other
		// client repairs its lease there when it renews it.
		return backoff.Doubled(50*time.Millisecond, seenBefore, 400*time.Millisecond) + backoff.Random(50*time.Millisecond)
	default:
		// The other claims yield to ours, or have ended. A signal reports that, too.
		return backoff.Doubled(2*time.Millisecond, seenBefore, 128*time.Millisecond) + backoff.Random(8*time.Millisecond)
	}
	a.forgetGrants(nodes)
	for i, v := range a.yieldNodes(ctx, nodes) {
		if v.answered() {
			votes[i] = v
		}
	}
	if succeeded(votes) == 0 {
		return 0
	}
	return 2*time.Millisecond + backoff.Random(8*time.Millisecond)
}

// nodesToYield returns the nodes on which another claim waits behind ours: a claim with a
// majority, if such claims leave no room for ours, or otherwise an older claim. In the
// first case, it also returns the digest of one of the claims with a majority.
func (a *attempt) nodesToYield(entries []vote[driver.Entry], votes grantVotes) (majorityClaim string, nodes []int) {
	var older []int
	room := int64(a.claim.Limit) - int64(a.claim.Weight)
	for _, rival := range groupByClaim(entries) {
		if rival.digest == a.place.tag.digest || len(rival.holders) == 0 {
			continue
		}
		var behind []int // the nodes that granted our claim, and on which the rival waits
		for _, w := range rival.waiters {
			if votes[w.node].err == nil {
				behind = append(behind, w.node)
			}
		}
		if rival.before(a.place.tag) {
			older = append(older, behind...)
		}
		if len(rival.holders) >= a.d.majority {
			room -= int64(rival.holders[0].Permits)
			nodes = append(nodes, behind...)
			majorityClaim = max(majorityClaim, rival.digest) // of several, always the same one
		}
	}
	if room >= 0 { // the claims with a majority do not keep ours out, so its age decides
		majorityClaim, nodes = "", older
	}
	slices.Sort(nodes)
	return majorityClaim, slices.Compact(nodes)
}

// yieldNodes releases the name on these nodes, and queues there again.
func (a *attempt) yieldNodes(ctx context.Context, nodes []int) grantVotes {
	d := a.d
	return poll(ctx, d, pollRequest[driver.Grant]{
		nodes: nodes, token: a.claim.Token,
		send: func(ctx context.Context, i int) (driver.Grant, error) {
			l := a.lease()
			l.HasEnd = true
			if err := d.releaseOnNode(ctx, i, l, true); err != nil && !isNoSuchLease(err) {
				return driver.Grant{}, err
			}
			return d.sendClaim(ctx, i, a.claim)
		},
		onAnswer: a.recordAnswer,
		onDone:   a.handleLateGrant,
	})
}
