package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

const (
	// A free name may have waiters for a TTL and maxIdle. After a fault it may have them
	// for two TTLs and maxIdle, because a place or a lease may have to expire first.
	maxIdle = int64(3 * time.Second)

	// idleSettleTime is the time after a fault in which it may still delay a grant.
	idleSettleTime = int64(time.Second)
)

// interval is a period in which a name may be taken, or in which a fault lasts.
type interval struct{ from, to int64 }

// idle finds waiters that kept waiting while the name was free, as after a missed
// wake-up.
func (w *world) idle(n *name) {
	var until int64 // the name may be taken until then
	for _, t := range append(w.takenTimes(n), interval{w.Last, w.Last}) {
		if t.from-until > w.Run.TTL+maxIdle {
			w.checkWaiters(n, until, t.from)
		}
		until = max(until, t.to)
	}
}

// takenTimes returns the intervals in which a claim may have had the name, or a place in
// its queue, ordered by their begin. A failed claim may have been granted without its
// client's knowledge, and a dead client may have left a lease or a place. An interval
// begins at the end of the claim's wait, because checkWaiters checks the wait.
func (w *world) takenTimes(n *name) []interval {
	all := make([]interval, 0, len(n.claims))
	for _, c := range n.claims {
		t := interval{w.waitEnd(c), w.goneBy(c)}
		switch {
		case c.Answer == history.Held:
			continue
		case c.How == history.All: // it may hold this name while it waits for another
			t.from = c.Asked
		case c.Answer == history.Granted:
			t.from = c.Got
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	return all
}

// checkWaiters checks the claims that waited while the name was free.
func (w *world) checkWaiters(n *name, from, to int64) {
	var pending []*history.Claim
	for _, c := range n.claims {
		if c.Asked >= to {
			break
		}
		if w.waitEnd(c) > from {
			pending = append(pending, c)
		}
	}
	behind := w.behindOwnClient(n)
	for _, c := range pending {
		if c.How != history.Wait && c.How != history.Lead {
			continue
		}
		// In a queue a claim waits only for the claims that came before it.
		before := pending
		if w.Run.Ordered && !behind[c] {
			n, _ := slices.BinarySearchFunc(pending, c.Asked+askMargin, func(p *history.Claim, t int64) int { return cmp.Compare(p.Asked, t) })
			before = pending[:n]
		}
		a, b := w.unexplainedWait(c, before, max(from, c.Asked), min(to, w.waitEnd(c)))
		if a == b {
			continue
		}
		w.add(Violation{Rule: Idle, Name: n.Name, From: a, To: b, Claims: ids(c)},
			"%s asked for %q at %s and waited until %s. From %s to %s no claim could hold the name, and no fault could delay the grant.",
			upper{c}, n.Name, at(c.Asked), at(w.waitEnd(c)), at(a), at(b))
		return
	}
}

// unexplainedWait returns a part of the interval that is long enough and in which no
// fault touches the claim or a claim before it. If there is no such part, a and b are
// equal.
func (w *world) unexplainedWait(c *history.Claim, before []*history.Claim, from, to int64) (a, b int64) {
	if to-from <= w.Run.TTL+maxIdle {
		return 0, 0
	}
	var reasons []interval
	addFaults := func(worker int, from, to int64) {
		for _, s := range w.faults.lasting(worker, from-idleSettleTime) {
			if s.from > to {
				break
			}
			if s.to >= from-idleSettleTime {
				reasons = append(reasons, interval{s.from, s.to + idleSettleTime})
			}
		}
	}
	addFaults(server, from, to)
	addFaults(c.Worker, from, to)
	for _, p := range before {
		if p.Worker != c.Worker {
			addFaults(p.Worker, max(from, p.Asked), min(to, w.waitEnd(p)))
		}
	}
	if len(reasons) == 0 {
		return from, to
	}
	slices.SortFunc(reasons, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	for _, r := range append(reasons, interval{to, to}) {
		if r.from-from > 2*w.Run.TTL+maxIdle {
			return from, r.from
		}
		from = max(from, r.to)
	}
	return 0, 0
}
