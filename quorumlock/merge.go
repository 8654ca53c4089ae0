package quorumlock

import (
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// nthSmallest returns the n-th smallest of the numbers, counted from 1. It sorts them.
func nthSmallest[T interface{ ~int | ~int64 | ~uint64 }](n int, numbers []T) T {
	slices.Sort(numbers)
	return numbers[n-1]
}

// majorityFence returns the fence that a majority of the nodes has, or otherwise the
// highest fence, or 0.
//
// A majority has each fence that a client got. So if fences are the last fences of some
// nodes, and a majority agrees on one, it is no lower than any client's fence. Otherwise
// the highest one is no lower if every majority includes a node that answered. But it may
// be a fence that no client got. Then a waiter may ignore a valid signal as outdated, and
// sends one more request.
func (d *quorum) majorityFence(fences []uint64) uint64 {
	slices.Sort(fences)
	for i := range len(fences) - d.majority + 1 {
		if fences[i] == fences[i+d.majority-1] {
			return fences[i]
		}
	}
	if len(fences) == 0 {
		return 0
	}
	return fences[len(fences)-1]
}

// A shownClaim is one claim, as the entries of the nodes show it.
type shownClaim struct {
	tag
	holders []shownHolder // one for each node on which the claim holds
	waiters []shownWaiter
}

type shownHolder struct {
	driver.Holder // its owner has no tag
	node          int
}

type shownWaiter struct {
	driver.Waiter
	node, place int
}

// A claimKey identifies a claim. The digest is not enough, because a token may have two
// leases on a node: an earlier one, kept for its minimum hold, and a new one.
type claimKey struct {
	digest string
	index  int // its number among the claims of the token in one entry
}

// groupByClaim groups the holders and waiters in the nodes' entries by claim.
func groupByClaim(entries []vote[driver.Entry]) map[claimKey]*shownClaim {
	all := map[claimKey]*shownClaim{}
	for i, e := range entries {
		if e.err != nil {
			continue
		}
		seen := map[string]int{}
		claimOf := func(o *driver.Owner) *shownClaim {
			var t tag
			t, *o = untag(*o)
			seen[t.digest]++
			k := claimKey{t.digest, seen[t.digest]}
			if all[k] == nil {
				all[k] = &shownClaim{tag: t}
			}
			return all[k]
		}
		for _, h := range e.value.Holders {
			s := claimOf(&h.Owner)
			s.holders = append(s.holders, shownHolder{h, i})
		}
		for k, w := range e.value.Waiters {
			s := claimOf(&w.Owner)
			s.waiters = append(s.waiters, shownWaiter{w, i, k + 1})
		}
	}
	return all
}

// mergeHolder merges the nodes' entries of one holder. Its fence is the fence on which a
// majority agrees. Its time left and its TTL are the longest that a majority, counting
// the silent nodes, may have. If no majority agrees yet, because the nodes granted from
// their queues and the client has not asked since, the fence is the highest. Later, the
// nodes agree on that fence if all can be reached.
func (d *quorum) mergeHolder(s *shownClaim, answers int) driver.Holder {
	need := min(len(s.holders), max(1, d.majority-(len(d.nodes)-answers)))
	h := s.holders[0].Holder
	var fences []uint64
	var ends, ttls []time.Duration
	var since []time.Time
	released := 0
	for _, x := range s.holders {
		fences, ends, since = append(fences, x.Fence), append(ends, x.ExpiresIn), append(since, x.Since)
		ttls = append(ttls, x.TTL)
		if x.Released {
			released++
		}
	}
	h.Since = median(since)
	h.Fence = d.majorityFence(fences)
	h.ExpiresIn, h.TTL = nthSmallest(len(ends)-need+1, ends), nthSmallest(len(ttls)-need+1, ttls)
	h.Released = released >= need
	return h
}

// median returns the median, because a minority of wrong clocks cannot move it beyond the
// others.
func median(times []time.Time) time.Time {
	slices.SortFunc(times, time.Time.Compare)
	return times[len(times)/2]
}

// refusal returns the error of a claim that no majority granted. If retryAfter is not 0,
// it is the time until the next useful attempt.
func (d *quorum) refusal(c driver.Claim, votes grantVotes, retryAfter time.Duration) *driver.HeldError {
	out := &driver.HeldError{Name: c.Name}
	entries := unansweredVotes[driver.Entry](len(votes)) // the holders that the refusals name
	var fences []uint64
	var closed, retries []time.Duration
	var places []int
	need := d.majority // the number of refusing nodes that still have to grant it
	for i, v := range votes {
		held, ok := errors.AsType[*driver.HeldError](v.err)
		switch {
		case v.err == nil:
			need--
			fences, closed, places = append(fences, v.value.Fence-1), append(closed, 0), append(places, 0)
		case ok:
			if held.Holders > 0 {
				entries[i] = vote[driver.Entry]{value: driver.Entry{Holders: []driver.Holder{held.Holder}}}
				out.Holders = max(out.Holders, held.Holders) // a minority may lack a lease
			}
			fences, closed = append(fences, held.Fence), append(closed, held.ClosedFor)
			if held.RetryAfter > 0 {
				retries = append(retries, held.RetryAfter)
			}
			if held.Position > 0 {
				places = append(places, held.Position)
			}
		}
	}
	out.Fence = d.majorityFence(fences)
	if d.majority <= len(closed) {
		out.ClosedFor = nthSmallest(d.majority, closed)
	}
	if need >= 1 && need <= len(retries) {
		out.RetryAfter = nthSmallest(need, retries)
	}
	// A try has a place if an earlier claim with the same token queued.
	if len(places) > 0 && slices.Max(places) > 0 {
		out.Position = max(1, nthSmallest(min(d.majority, len(places)), places))
	}
	if retryAfter > 0 { // some nodes have granted our claim, so no claim is ahead of it on all nodes
		out.RetryAfter, out.Position = retryAfter, 1
	}
	most := 0 // the number of nodes with out.Holder; of holders on as many nodes, the first to end counts
	for _, s := range groupByClaim(entries) {
		h := d.mergeHolder(s, succeeded(entries))
		if n := len(s.holders); n > most || n == most && h.ExpiresIn < out.Holder.ExpiresIn {
			most, out.Holder = n, h
		}
	}
	return out
}
