package quorumlock

import (
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// nth sorts the numbers, and returns the n-th smallest, counted from 1.
func nth[T interface{ ~int | ~int64 | ~uint64 }](n int, of []T) T {
	slices.Sort(of)
	return of[n-1]
}

// lastFence returns the last granted fence, by the answers of some nodes. A majority
// knows each fence that a client has got. So a fence on which a majority agrees is no
// lower than any client's fence. The highest answer is no lower either, if every majority
// includes a node that answered. But it may be a fence that no client has. Then a waiter
// may take a valid signal for an outdated one, and sends one more request.
func (d *quorum) lastFence(fences []uint64) uint64 {
	if len(fences) == 0 {
		return 0
	}
	return common(fences, d.majority)
}

// A shownClaim is one claim as the nodes show it.
type shownClaim struct {
	tag     tag
	holders []driver.Holder // one for each node on which the claim holds
	waiters []driver.Waiter
	places  []int64 // the claim's place in each queue, 0 where it holds
}

// groupByClaim groups, by claim, the holders and waiters that several nodes show.
func groupByClaim(entries []driver.Entry) map[key]*shownClaim {
	all := map[key]*shownClaim{}
	at := func(o *driver.Owner, ks keys) *shownClaim {
		var t tag
		t, *o = untag(*o)
		k := ks.next(t)
		s := all[k]
		if s == nil {
			s = &shownClaim{tag: t}
			all[k] = s
		}
		return s
	}
	for _, e := range entries {
		ks := keys{}
		for _, h := range e.Holders {
			s := at(&h.Owner, ks)
			s.holders = append(s.holders, h)
			s.places = append(s.places, 0)
		}
		for i, w := range e.Waiters {
			s := at(&w.Owner, ks)
			s.waiters = append(s.waiters, w)
			s.places = append(s.places, int64(i+1))
		}
	}
	return all
}

// holder merges what the nodes show of one holder. Its fence is the fence on which a
// majority agrees. Its time left and its TTL are the longest that a majority, counting
// the silent nodes, may have. If the nodes do not agree yet, because they passed the name
// on and the client has not asked since, the fence is the highest. The nodes agree on it
// later, if all can be reached.
func (d *quorum) holder(s *shownClaim, answers int) driver.Holder {
	need := min(len(s.holders), max(1, d.majority-(len(d.nodes)-answers)))
	h := s.holders[0]
	var fences []uint64
	var ends, ttls []time.Duration
	var since []time.Time
	kept := 0
	for _, x := range s.holders {
		fences, ends, since = append(fences, x.Fence), append(ends, x.ExpiresIn), append(since, x.Since)
		ttls = append(ttls, x.TTL)
		if x.Released {
			kept++
		}
	}
	h.Since = middle(since)
	h.Fence = common(fences, d.majority)
	h.ExpiresIn, h.TTL = nth(len(ends)-need+1, ends), nth(len(ttls)-need+1, ttls)
	h.Released = kept >= need
	return h
}

// middle returns the median, which a minority of the clocks cannot move beyond the rest.
func middle(times []time.Time) time.Time {
	slices.SortFunc(times, time.Time.Compare)
	return times[len(times)/2]
}

// common returns the fence that a majority of the nodes has, or else the highest fence.
func common(fences []uint64, majority int) uint64 {
	slices.Sort(fences)
	for i := range len(fences) - majority + 1 {
		if fences[i] == fences[i+majority-1] {
			return fences[i]
		}
	}
	return fences[len(fences)-1]
}

// refusal is the answer to a claim that no majority granted. soon, if it is not 0, is the
// time after which another request makes sense.
func (d *quorum) refusal(c driver.Claim, votes ballots, soon time.Duration) *driver.HeldError {
	out := &driver.HeldError{Name: c.Name}
	var entries []driver.Entry
	var fences []uint64
	var closed, retries []time.Duration
	var places, holders []int64
	need := d.majority // how many of the nodes that refused have to grant it
	for _, v := range votes {
		held, ok := errors.AsType[*driver.HeldError](v.err)
		switch {
		case v.in && v.err == nil:
			need--
			fences, closed, places = append(fences, v.value.Fence-1), append(closed, 0), append(places, 0)
		case ok:
			holders = append(holders, int64(held.Holders))
			if held.Holders > 0 {
				entries = append(entries, driver.Entry{Holders: []driver.Holder{held.Holder}})
			}
			fences, closed = append(fences, held.Fence), append(closed, held.ClosedFor)
			if held.RetryAfter > 0 {
				retries = append(retries, held.RetryAfter)
			}
			if held.Position > 0 {
				places = append(places, int64(held.Position))
			}
		}
	}
	out.Fence = d.lastFence(fences)
	if d.majority <= len(closed) {
		out.ClosedFor = nth(d.majority, closed)
	}
	if need >= 1 && need <= len(retries) {
		out.RetryAfter = nth(need, retries)
	}
	// A try has a place if an earlier claim with the same token queued.
	if len(places) > 0 && slices.Max(places) > 0 {
		out.Position = int(max(1, nth(min(d.majority, len(places)), places)))
	}
	if soon > 0 { // we hold the name on some nodes, so no claim is ahead of ours on all nodes
		out.RetryAfter, out.Position = soon, 1
	}
	out.Holders, out.Holder = d.inTheWay(entries, holders)
	return out
}

// inTheWay returns how many leases hold a name, and one of the holders, by the answers of
// the nodes. The number is the highest of any node, because a minority may lack a lease.
// The holder is the one that most nodes show and, of several such holders, ends first.
func (d *quorum) inTheWay(entries []driver.Entry, holders []int64) (n int, first driver.Holder) {
	if len(entries) == 0 {
		return 0, driver.Holder{}
	}
	shown := 0
	for _, s := range groupByClaim(entries) {
		h := d.holder(s, len(entries))
		if on := len(s.holders); on > shown || on == shown && h.ExpiresIn < first.ExpiresIn {
			shown, first = on, h
		}
	}
	return int(slices.Max(holders)), first
}
