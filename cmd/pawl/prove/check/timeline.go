package check

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// server is the worker of the faults of the server.
const server = -1

// never is before every time of a history.
const never = math.MinInt64

// timeline has the times of the faults of each worker, in the order of their begin.
type timeline map[int][]span

// span is the time of a fault. Until is the latest end of it and of those before it.
type span struct{ from, to, until int64 }

func newTimeline(faults []history.Fault) timeline {
	t := timeline{}
	for _, f := range faults {
		t[f.Worker] = append(t[f.Worker], span{from: f.From, to: max(f.From, f.To)})
	}
	for _, spans := range t {
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		until := int64(never)
		for i := range spans {
			until = max(until, spans[i].to)
			spans[i].until = until
		}
	}
	return t
}

// begun returns the number of faults of the worker that began at that time or before.
func (t timeline) begun(worker int, at int64) int {
	spans := t[worker]
	return sort.Search(len(spans), func(i int) bool { return spans[i].from > at })
}

// lastTouch returns the last instant not after at when a fault of the worker lasted.
func (t timeline) lastTouch(worker int, at int64) int64 {
	n := t.begun(worker, at)
	if n == 0 {
		return never
	}
	return min(at, t[worker][n-1].until)
}

// touched reports whether a fault of the worker lasted at some instant of the interval.
func (t timeline) touched(worker int, from, to int64) bool { return t.lastTouch(worker, to) >= from }

// after returns the time at, or a later one: it adds pause to the end of each fault of
// the worker that has begun by then.
func (t timeline) after(worker int, from, at, pause int64) int64 {
	spans := t[worker]
	for _, s := range spans[t.firstAfter(worker, from):] {
		if s.from > at {
			break
		}
		at = max(at, s.to+pause)
	}
	return at
}

// firstAfter is the index of the first of the worker's faults that may last at that time
// or later.
func (t timeline) firstAfter(worker int, at int64) int {
	spans := t[worker]
	return sort.Search(len(spans), func(i int) bool { return spans[i].until >= at })
}

// touchedClaim reports whether a fault of the claim's worker or of the server lasted at
// some instant of the interval.
func (w *world) touchedClaim(c *history.Claim, from, to int64) bool {
	return w.faults.touched(c.Worker, from, to) || w.faults.touched(server, from, to)
}

// forgot reports whether the server may have forgotten a lease by that time. The holder
// may have learned of the grant a little later than the server made it.
func (w *world) forgot(c *history.Claim, by int64) bool {
	return w.forgotten.touched(server, max(c.Asked, c.Got-straggler), by)
}
