package quorumlock

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

func duration(ns int64) time.Duration { return time.Duration(ns) }

// last is the last fence that was granted, of which the nodes know some. Every grant that
// was shown is known to a majority: a number on which a majority agrees is no lower than
// that, and neither is the highest of so many answers that they meet every majority. The
// highest may be one that nobody was shown; a client that takes it for granted asks once
// too often.
func (d *Driver) last(fences []uint64) uint64 {
	if len(fences) == 0 {
		return 0
	}
	return common(fences, d.majority)
}

// A sighting is one claim as the nodes show it.
type sighting struct {
	tag     tag
	holders []driver.Holder // one for each node that has it as a holder
	waiters []driver.Waiter
	places  []int64 // its place in each queue, 0 where it holds
}

// sight puts together what several nodes show.
func sight(entries []driver.Entry) map[key]*sighting {
	all := map[key]*sighting{}
	at := func(o *driver.Owner, ks keys) *sighting {
		var t tag
		t, *o = untag(*o)
		k := ks.next(t)
		s := all[k]
		if s == nil {
			s = &sighting{tag: t}
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

// holder is the one that a majority shows: with the fence they agree on, and for as long
// as a majority keeps it. Where they do not agree yet, for it was passed on and nobody
// has asked, the fence is the highest: to that they will be brought, if all can be
// reached then.
func (d *Driver) holder(s *sighting, answers int) driver.Holder {
	need := min(len(s.holders), max(1, d.majority-(len(d.nodes)-answers)))
	h := s.holders[0]
	var fences []uint64
	var ends []int64
	var since []time.Time
	kept := 0
	for _, x := range s.holders {
		fences, ends, since = append(fences, x.Fence), append(ends, int64(x.ExpiresIn)), append(since, x.Since)
		if x.Released {
			kept++
		}
	}
	h.Since = middle(since)
	h.Fence = common(fences, d.majority)
	h.ExpiresIn = duration(nth(len(ends)-need+1, ends))
	h.Released = kept >= need
	return h
}

// middle is the time in the middle, which no minority of clocks can move beyond what the
// others show.
func middle(times []time.Time) time.Time {
	slices.SortFunc(times, time.Time.Compare)
	return times[len(times)/2]
}

// common is the one of these fences that so many have, or the highest.
func common(fences []uint64, majority int) uint64 {
	slices.Sort(fences)
	for i := range len(fences) - majority + 1 {
		if fences[i] == fences[i+majority-1] {
			return fences[i]
		}
	}
	return fences[len(fences)-1]
}

func sortHolders(hs []driver.Holder) {
	slices.SortFunc(hs, func(a, b driver.Holder) int { return cmp.Compare(a.Fence, b.Fence) })
}

// refusal is the answer to a claim that no majority granted. With soon, it makes sense to
// ask again by then.
func (d *Driver) refusal(c driver.Claim, votes ballots, soon time.Duration) *driver.HeldError {
	out := &driver.HeldError{Name: c.Name}
	var entries []driver.Entry
	var fences []uint64
	var closed, retries, places, holders []int64
	need := d.majority // of the nodes that refused, so many have to change their mind
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
			fences, closed = append(fences, held.Fence), append(closed, int64(held.ClosedFor))
			if held.RetryAfter > 0 {
				retries = append(retries, int64(held.RetryAfter))
			}
			if held.Position > 0 {
				places = append(places, int64(held.Position))
			}
		}
	}
	out.Fence = d.last(fences)
	if d.majority <= len(closed) {
		out.ClosedFor = duration(nth(d.majority, closed))
	}
	if need >= 1 && need <= len(retries) {
		out.RetryAfter = duration(nth(need, retries))
	}
	// A try has a place, too, if its token waits.
	if len(places) > 0 && slices.Max(places) > 0 {
		out.Position = int(max(1, nth(min(d.majority, len(places)), places)))
	}
	if soon > 0 { // we hold it on some nodes: nobody is ahead of us everywhere
		out.RetryAfter, out.Position = soon, 1
	}
	out.Holders, out.Holder = d.inTheWay(entries, holders)
	return out
}

// inTheWay says how many hold a name, and which of them ends first, by what nodes show of
// that: as many as one of them has, for a lease may be missing on a minority; and the one
// that most of them show, or the one of those that ends first.
func (d *Driver) inTheWay(entries []driver.Entry, holders []int64) (n int, first driver.Holder) {
	if len(entries) == 0 {
		return 0, driver.Holder{}
	}
	shown := 0
	for _, s := range sight(entries) {
		h := d.holder(s, len(entries))
		if on := len(s.holders); on > shown || on == shown && h.ExpiresIn < first.ExpiresIn {
			shown, first = on, h
		}
	}
	return int(slices.Max(holders)), first
}
