package quorumlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// Each node has a queue of its own, and claims that come at about the same time reach the
// nodes in different orders. Each node grants a free name to the claim that reaches it
// first. Then several claims have some nodes each, and none has a majority: the vote is
// split.
//
// Tickets decide, twice. A claim's ticket decides its place in each queue (Claim.Ticket),
// so the queues of all nodes have one order, as soon as the claim has reached all nodes.
// Tickets also decide among the claims that hold the name somewhere, if none has a
// majority. Each claim gives back the nodes on which an older such claim waits, and goes
// back to its own place in the queue there. The node then grants to the next claim in
// that queue: the oldest claim, or one that yields again. The order is the same on all
// nodes, so the oldest never yields, and of claims that wait for each other one always
// yields.
//
// If the oldest claim has reached all nodes, each other claim yields once. So a split
// costs no more than N*N reads and 2(N-1) requests, however many claims wait. If the
// oldest has not, or a client's clock is off by more than half of driver.MaxLead, claims
// yield in a chain. But a claim is overtaken only by claims before it in some queue, once
// for each time that it yields. It yields only to older claims, whose number is finite.

// ticketLead is the time by which a ticket is dated before its claim. By its own clock, a
// node limits a ticket to the time from driver.MaxLead before the claim's arrival up to
// the arrival. So clocks may be off by half of MaxLead in either direction.
const ticketLead = driver.MaxLead / 2

// ticket returns the ticket of a claim that comes now.
func (d *quorum) ticket() uint64 { return uint64(max(d.now().Add(-d.early).UnixMicro(), 1)) }

// A standoff is the division of the nodes that answered among the holders of a name.
type standoff struct {
	majorityClaim [10]byte // one of the other claims with a majority, if they leave no room for ours
	yield         []int    // the nodes on which such a claim, or else an older claim, waits behind us
}

// A claim gives a node back to another claim with a majority only after
// yieldToMajorityAfter. Most leases are over by then, and a claim that has waited long
// would lose its turn on the node. A claim younger than yieldAtOnceUntil gives the node
// back at once, because its ticket still counts there.
const (
	yieldToMajorityAfter = 200 * time.Millisecond
	yieldAtOnceUntil     = (driver.MaxLead - ticketLead) * 3 / 4
)

// settle is for a claim that queues, and that some nodes have granted, but no majority.
// It gives back nodes on which an older claim waits, or a claim with a majority, which
// more nodes make safer. It updates votes, and returns the time after which asking again
// makes sense, or 0.
func (a *attempt) settle(ctx context.Context, votes ballots) (soon time.Duration) {
	if succeeded(votes) == 0 {
		return 0
	}
	s := a.standoff(a.d.read(ctx, a.claim.Name, a.d.hasMajority), votes)
	since, firm, nth := a.place.noteMajorityClaim(s.majorityClaim)
	isYoung := a.d.ticket() < a.place.tag.ticket+uint64(yieldAtOnceUntil.Microseconds())
	switch {
	case len(s.yield) > 0 && (!firm || isYoung || since > yieldToMajorityAfter):
	case firm:
		// Our vote is on a node that has missed the grant of the other claim. That
		// claim's holder asks for the node when it renews its lease.
		return backoff.Doubled(50*time.Millisecond, nth, 400*time.Millisecond) + backoff.Below(50*time.Millisecond)
	default:
		// The other claims yield to us; or they have ended, and we may have their nodes
		// by now. A signal reports that, too.
		return backoff.Doubled(2*time.Millisecond, nth, 128*time.Millisecond) + backoff.Below(8*time.Millisecond)
	}
	a.forgetGrants(s.yield)
	for i, v := range a.yield(ctx, s.yield) {
		if v.in {
			votes[i] = v
		}
	}
	if succeeded(votes) == 0 {
		return 0
	}
	return 2*time.Millisecond + backoff.Below(8*time.Millisecond)
}

func (a *attempt) standoff(entries []vote[driver.Entry], votes ballots) standoff {
	type rival struct {
		tag
		holds  int
		weight int64
		waits  []int // the nodes that granted our claim, and on which the rival waits
	}
	rivals := map[[10]byte]*rival{}
	at := func(o driver.Owner) *rival {
		t, _ := untag(o)
		if rivals[t.digest] == nil {
			rivals[t.digest] = &rival{tag: t}
		}
		return rivals[t.digest]
	}
	for i, v := range entries {
		if !v.in || v.err != nil {
			continue
		}
		for _, h := range v.value.Holders {
			r := at(h.Owner)
			r.holds++
			r.weight = int64(h.Permits)
		}
		for _, w := range v.value.Waiters {
			if r := at(w.Owner); votes[i].in && votes[i].err == nil {
				r.waits = append(r.waits, i)
			}
		}
	}
	var s standoff
	var firm, older []int
	room := int64(a.claim.Limit) - int64(a.claim.Weight)
	for digest, r := range rivals {
		if digest == a.place.tag.digest || r.holds == 0 {
			continue
		}
		if r.before(a.place.tag) {
			older = append(older, r.waits...)
		}
		if r.holds >= a.d.majority {
			room -= r.weight
			firm = append(firm, r.waits...)
			if string(digest[:]) > string(s.majorityClaim[:]) {
				s.majorityClaim = digest // of several, the same one at each look
			}
		}
	}
	s.yield = firm // no other claim can win now, and all of them find that out
	if room >= 0 {
		s.majorityClaim, s.yield = [10]byte{}, older
	}
	slices.Sort(s.yield)
	s.yield = slices.Compact(s.yield)
	return s
}

// yield gives the name back on these nodes, and queues again.
func (a *attempt) yield(ctx context.Context, nodes []int) ballots {
	d := a.d
	return poll(ctx, d, ballot[driver.Grant]{
		nodes: nodes, token: a.claim.Token,
		send: func(ctx context.Context, i int) (driver.Grant, error) {
			l := a.lease()
			l.OnTime = true
			if err := d.giveBack(ctx, i, l, a.claim.TTL, true); err != nil && !errors.Is(err, driver.ErrNoSuchLease) {
				return driver.Grant{}, err
			}
			return d.ask(ctx, i, a.claim)
		},
		decided: func(votes ballots) bool { return answered(votes) == len(nodes) },
		first:   a.noteAnswer,
		after:   a.tooLate,
	})
}
