package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// The time limits of the rule LossNotSeen.
const (
	maxLossDelay = int64(time.Second)     // from another holder's grant until the holder sees its loss
	maxWakeDelay = int64(2 * time.Second) // from then until the lock notifies the holder
)

// lossNotSeen finds holders that worked on although another had got the name, and holders
// that the lock did not wake up. The time limit of a holder whose process is stopped
// begins when the process continues.
func (w *world) lossNotSeen(n *name) {
	next := w.successors(n)
	for _, a := range n.granted {
		w.notWoken(n, a)
		b := next[a]
		if b == nil {
			continue
		}
		superseded := max(a.Got, b.Got)
		if w.forgot(a, superseded) {
			continue
		}
		if running := max(superseded, w.stops.lastTouch(a.Worker, a.Lost)); a.Lost > running {
			w.Numbers.MaxLossDelay = max(w.Numbers.MaxLossDelay, time.Duration(a.Lost-running))
		}
		latest := w.stops.postpone(a.Worker, superseded, superseded+maxLossDelay, maxLossDelay)
		until := w.workedUntil(a)
		if until <= latest {
			continue
		}
		text := "%s held %q from %s on. %s got the name at %s. The first holder worked on for %s and "
		args := []any{upper{a}, n.Name, at(a.Got), upper{b}, at(b.Got), length(until - superseded)}
		if a.Lost == 0 {
			text += "never saw that its own lease was over."
		} else {
			text, args = text+"saw only at %s that its own lease was over.", append(args, at(a.Lost))
		}
		w.add(Violation{Rule: LossNotSeen, Name: n.Name, From: superseded, To: until, Claims: ids(a, b)}, text, args...)
	}
}

// workedUntil returns the time at which a holder saw its loss, released or died.
func (w *world) workedUntil(c *history.Claim) int64 {
	if c.Died != 0 && c.Lost == 0 && c.Released == 0 {
		return max(c.Got, c.Believed) // it died soon after that; Died may be later
	}
	return w.firstOf(c.Lost, c.Released, c.Died)
}

// firstOf returns the earliest of the times that are not 0, or the end of the history.
func (w *world) firstOf(times ...int64) int64 {
	first := w.Last
	for _, t := range times {
		if t != 0 {
			first = min(first, t)
		}
	}
	return first
}

// notWoken reports a holder that saw its loss only because it called Err. It checks only
// Pawl, because no other lock promises to notify holders.
func (w *world) notWoken(n *name, c *history.Claim) {
	if c.Lost == 0 || w.Run.Lock != "pawl" {
		return
	}
	latest := w.stops.postpone(c.Worker, c.Lost, c.Lost+maxWakeDelay, maxWakeDelay)
	if woken := w.firstOf(c.Woken, c.Released, c.Died); woken > latest {
		w.add(Violation{Rule: LossNotSeen, Name: n.Name, From: c.Lost, To: woken, Claims: ids(c)},
			"%s had lost %q at %s, and the lock had not woken it up %s later.",
			upper{c}, n.Name, at(c.Lost), length(woken-c.Lost))
	}
}

// successors returns, for each lease, the first grant that ended it: a grant that
// excludes the lease and was certainly later. A later grant has a greater fence; without
// fences, it was asked for after the lease had been granted.
func (w *world) successors(n *name) map[*history.Claim]*history.Claim {
	begin := func(c *history.Claim) uint64 { return uint64(c.Asked) }
	end := func(c *history.Claim) uint64 { return uint64(c.Got) }
	if w.Run.Fenced {
		begin = func(c *history.Claim) uint64 { return c.Fence }
		end = begin
	}
	sorted := func(key func(c *history.Claim) uint64) []*history.Claim {
		return slices.SortedStableFunc(slices.Values(n.granted), func(a, b *history.Claim) int { return cmp.Compare(key(a), key(b)) })
	}
	grants := sorted(begin)
	first := map[class]*history.Claim{} // the first later grant of each class
	next := map[*history.Claim]*history.Claim{}
	for _, lease := range slices.Backward(sorted(end)) {
		for i := len(grants) - 1; i >= 0 && begin(grants[i]) > end(lease); i-- {
			if c, f := grants[i], first[classOf(grants[i])]; f == nil || c.Got < f.Got {
				first[classOf(c)] = c
			}
			grants = grants[:i]
		}
		for _, c := range first {
			if b := next[lease]; n.excludes(lease, c) && (b == nil || cmp.Or(cmp.Compare(c.Got, b.Got), cmp.Compare(c.ID, b.ID)) < 0) {
				next[lease] = c
			}
		}
	}
	return next
}
