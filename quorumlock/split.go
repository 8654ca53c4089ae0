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
// first. Then several claims have some nodes, and none has a majority: the vote is split.
//
// Tickets decide, twice. A claim's ticket decides its place in each queue (Claim.Ticket),
// so the queues of all nodes have one order, as soon as the claim has reached all of
// them. And of the claims that hold the name somewhere and have no majority, the one with
// the first ticket keeps what it has. Each other one gives back what it has on each node
// where that one waits, and goes back to its own place in the queue there. So the node
// grants to the next in that queue: the oldest, if all have come, or a claim that yields
// again. The order of tickets is the same for all, so the first never yields, and of
// claims that wait for each other one always yields.
//
// If the oldest has reached all nodes, each of the others yields once. So a split costs
// no more than N*N reads and 2(N-1) requests, however many claims wait. If it has not, or
// a client's clock is off by more than half of driver.MaxLead, it takes a chain of
// yields. But a claim is overtaken only by claims that are before it in some queue, once
// for each time that it yields, and it yields only to older ones, whose number is finite.

// ticketLead is the time by which a ticket is dated before its claim. A node takes a
// ticket for no later than its own time when the claim arrives, and for no earlier than
// driver.MaxLead before that. So clocks may be off by half of MaxLead in either
// direction.
const ticketLead = driver.MaxLead / 2

// ticket is the ticket of a claim that comes now.
func (d *quorum) ticket() uint64 { return uint64(max(d.now().Add(-d.early).UnixMicro(), 1)) }

// A standoff is the division of the nodes that answered among the holders of a name.
type standoff struct {
	majorityClaim [10]byte // another claim with a majority, if such claims leave no room for ours
	yield         []int    // the nodes on which that one, or else an older one, waits behind us
}

// A claim gives a node back for another one's majority only after that majority has
// lasted for yieldToMajorityAfter: most leases are over by then, and a claim that has
// waited long loses its turn on that node. A claim younger than yieldAtOnceUntil gives it
// back at once, because its ticket still counts there.
const (
	yieldToMajorityAfter = 200 * time.Millisecond
	yieldAtOnceUntil     = (driver.MaxLead - ticketLead) * 3 / 4
)

// settle is for a claim that queues and was granted by some nodes, but by no majority. It
// gives nodes back that an older claim needs; or a claim that has a majority, and would
// be safer with this node, too. It brings the votes up to date, and returns when asking
// again makes sense, or 0.
func (a *attempt) settle(ctx context.Context, votes ballots) (soon time.Duration) {
	if succeeded(votes) == 0 {
		return 0
	}
	s := a.standoff(a.d.read(ctx, a.claim.Name, a.d.everyone()), votes)
	since, firm, nth := a.place.noteMajorityClaim(s.majorityClaim)
	isYoung := a.d.ticket() < a.place.tag.ticket+uint64(yieldAtOnceUntil.Microseconds())
	switch {
	case len(s.yield) > 0 && (!firm || isYoung || since > yieldToMajorityAfter):
	case firm:
		// We have a vote too many, because that node has missed the grant. Its holder
		// asks for the node when it renews its lease.
		return backoff.Doubled(50*time.Millisecond, nth, 400*time.Millisecond) + backoff.Below(50*time.Millisecond)
	default:
		// Others yield to us; or they were gone when we looked, and we may have their
		// nodes by now. A signal reports that, too.
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
		waits  []int // on which of the nodes that granted our claim
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
