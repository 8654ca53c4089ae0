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
// nodes in different orders. A name that is free is granted to the claim that comes
// first, to one here and to another there, and none has a majority: the vote is split.
//
// Tickets decide, twice. A claim that queues stands where its ticket puts it
// (Claim.Ticket), so the queues of all nodes have one order, as soon as it has come to
// all of them. And of the claims that hold the name somewhere and have no majority, the
// one with the first ticket keeps what it has. Another gives back what it has on each
// node where that one waits, and goes back to its own place in the queue there. So the
// next in that queue has it: the oldest, if all have come, or one who does the same. The
// order of tickets is the same for everybody, so the first never yields, and of those
// that wait for each other one always does.
//
// Where the oldest has come to all nodes, each of the others yields once, so a split
// costs no more than N*N reads and 2(N-1) requests, however many wait. Where it has not,
// or a client's clock is further off than half of driver.MaxLead, it takes a chain of
// yields; but a claim is overtaken only by those that stand before it in some queue, once
// for each time that it yields, and it yields only to older ones, of which there are
// finitely many.

// ahead is how long before its coming a ticket is dated: a node takes it for no later
// than its own time when the claim arrives, and for no earlier than driver.MaxLead before
// that. So clocks may be off by half of that either way.
const ahead = driver.MaxLead / 2

// ticket is that of a claim that comes now.
func (d *Driver) ticket() uint64 { return uint64(max(d.now().Add(-d.early).UnixMicro(), 1)) }

// A standoff is how the holders of a name stand, seen on all nodes that answered.
type standoff struct {
	firm  [10]byte // somebody else who has a majority, if those leave no room for us
	yield []int    // where that one, or else somebody older, waits behind us
}

// A node is given back for somebody else's majority when that has lasted firmly: most
// leases are over by then, and a claim that has waited long loses its turn on that node.
// One that is younger than young does not, for its ticket still counts.
const (
	firmly = 200 * time.Millisecond
	young  = (driver.MaxLead - ahead) * 3 / 4
)

// settle looks at a claim that queues and was granted by some nodes, but no majority, and
// gives it back where it is in the way of an older one; or of one that has a majority and
// could have this node, too, which keeps it safe from the loss of another. It brings the
// votes up to date, and returns when asking again makes sense, or 0.
func (a *attempt) settle(ctx context.Context, votes ballots) (soon time.Duration) {
	if succeeded(votes) == 0 {
		return 0
	}
	s := a.standoff(a.d.read(ctx, a.claim.Name, a.d.everyone()), votes)
	since, firm, nth := a.place.looked(s.firm)
	isYoung := a.d.ticket() < a.place.tag.ticket+uint64(young.Microseconds())
	switch {
	case len(s.yield) > 0 && (!firm || isYoung || since > firmly):
	case firm:
		// We have a vote too many, because a node has missed that grant. Its holder asks
		// for it when it renews its lease.
		return backoff.Doubled(50*time.Millisecond, nth, 400*time.Millisecond) + backoff.Below(50*time.Millisecond)
	default:
		// Others yield to us; or they were gone when we looked, and what they had may be
		// ours by now. That is signalled, too.
		return backoff.Doubled(2*time.Millisecond, nth, 128*time.Millisecond) + backoff.Below(8*time.Millisecond)
	}
	a.givesBack(s.yield)
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
		waits  []int // on which of the nodes that granted us
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
			r.weight = int64(h.Weight)
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
			if string(digest[:]) > string(s.firm[:]) {
				s.firm = digest // of several, the same at each look
			}
		}
	}
	s.yield = firm // the others have no chance now, and all of them find that out
	if room >= 0 {
		s.firm, s.yield = [10]byte{}, older
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
			if err := d.giveBack(ctx, i, l, a.claim.TTL, true); err != nil && !errors.Is(err, driver.ErrNotHeld) {
				return driver.Grant{}, err
			}
			return d.ask(ctx, i, a.claim)
		},
		decided: func(votes ballots) bool { return answered(votes) == len(nodes) },
		first:   a.note,
		after:   a.tooLate,
	})
}
