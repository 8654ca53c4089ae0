package check

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// server is the value of Fault.Worker for the server.
const server = -1

// minTime is earlier than all times of a history.
const minTime = math.MinInt64

// timeline has the times of the faults of each worker, sorted by their beginning.
type timeline map[int][]span

// span is the time of a fault. latestEnd is the latest end of this fault and of all
// faults that began earlier.
type span struct{ from, to, latestEnd int64 }

func newTimeline(faults []history.Fault) timeline {
	t := timeline{}
	for _, f := range faults {
		t[f.Worker] = append(t[f.Worker], span{from: f.From, to: max(f.From, f.To)})
	}
	for _, spans := range t {
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		latest := int64(minTime)
		for i := range spans {
			latest = max(latest, spans[i].to)
			spans[i].latestEnd = latest
		}
	}
	return t
}

// lastTouch returns the latest time, up to limit, at which a fault of the worker lasted.
func (t timeline) lastTouch(worker int, limit int64) int64 {
	spans := t[worker]
	begun := sort.Search(len(spans), func(i int) bool { return spans[i].from > limit })
	if begun == 0 {
		return minTime
	}
	return min(limit, spans[begun-1].latestEnd)
}

// touched reports whether a fault of the worker lasted at some instant of the interval.
func (t timeline) touched(worker int, from, to int64) bool { return t.lastTouch(worker, to) >= from }

// postpone moves moment behind the worker's faults that last at from or later. If such a
// fault has begun by moment, it moves moment to the end of the fault plus pause.
func (t timeline) postpone(worker int, from, moment, pause int64) int64 {
	for _, s := range t.lasting(worker, from) {
		if s.from > moment {
			break
		}
		moment = max(moment, s.to+pause)
	}
	return moment
}

// lasting returns the worker's faults, beginning with the first that lasts at the given
// time or later.
func (t timeline) lasting(worker int, at int64) []span {
	spans := t[worker]
	return spans[sort.Search(len(spans), func(i int) bool { return spans[i].latestEnd >= at }):]
}

// touchedClaim reports whether a fault of the claim's worker or of the server lasted at
// some instant of the interval.
func (w *world) touchedClaim(c *history.Claim, from, to int64) bool {
	return w.faults.touched(c.Worker, from, to) || w.faults.touched(server, from, to)
}

// forgot reports whether the server may have lost a lease by the given time. The server
// may have granted the lease up to maxLateness before its holder learned of it.
func (w *world) forgot(c *history.Claim, by int64) bool {
	return w.dataLosses.touched(server, max(c.Asked, c.Got-maxLateness), by)
}
