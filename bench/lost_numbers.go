package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// losses are the numbers of a contender in a run. A lost holder is one whose name another
// client got during its section, or whose lock notified it of a loss.
type losses struct {
	Contender   string `json:"contender"`
	Sections    int    `json:"sections"`
	LostUpdates int    `json:"lost_updates"`
	Overlaps    int    `json:"overlaps"`

	LostHolders    int           `json:"lost_holders"`
	UnawareHolders int           `json:"not_told"` // lost holders whose section ended before they knew of the loss
	NoticeMedian   time.Duration `json:"told_median_ns"`
	NoticeWorst    time.Duration `json:"told_worst_ns"`

	WaitMedian time.Duration  `json:"wait_median_ns"`
	WaitP99    time.Duration  `json:"wait_p99_ns"`
	Faults     map[string]int `json:"faults"`

	failed string // the ends of workers that no fault explains
}

// lossesOf counts the losses in a history.
func (c faultContender) lossesOf(h *history.History) losses {
	verdict := check.Run(h)
	n := verdict.Numbers
	l := losses{
		Contender: c.name, Sections: n.Leases, Overlaps: verdict.Count[check.Overlap], Faults: n.FaultsByKind,
		WaitMedian: n.WaitMedian, WaitP99: n.WaitP99,
	}
	for _, w := range h.Writes {
		if c.losesUpdate(w) {
			l.LostUpdates++
		}
	}
	for _, w := range h.Workers {
		if !slices.Contains([]string{"done", "killed", "crashed"}, w.End) {
			l.failed += fmt.Sprintf("; worker %d: %s", w.Worker, w.End)
		}
	}
	holders := map[string][]*history.Claim{}
	for _, claim := range h.Claims {
		if claim.Got > 0 {
			holders[claim.Name] = append(holders[claim.Name], claim)
		}
	}
	stops := map[int][]history.Fault{}
	for _, f := range h.Faults {
		if f.Kind == history.Stop {
			stops[f.Worker] = append(stops[f.Worker], f)
		}
	}
	var delays []time.Duration
	for _, claims := range holders {
		slices.SortFunc(claims, func(a, b *history.Claim) int { return cmp.Compare(a.Got, b.Got) })
		for i, holder := range claims {
			next := nextBelieved(claims[i+1:])
			learnedAt, lost := l.countHolder(holder, next)
			if lost && learnedAt > 0 && next != nil {
				delays = append(delays, time.Duration(learnedAt-nextRunningTime(stops[holder.Worker], next.Got)))
			}
		}
	}
	slices.Sort(delays)
	if len(delays) > 0 {
		l.NoticeMedian, l.NoticeWorst = delays[len(delays)/2], delays[len(delays)-1]
	}
	return l
}

// nextBelieved returns the first later grant on which a holder relied. A grant that had
// ended when its answer came has superseded no other lease.
func nextBelieved(later []*history.Claim) *history.Claim {
	i := slices.IndexFunc(later, func(c *history.Claim) bool { return c.Believed > c.Got })
	if i < 0 {
		return nil
	}
	return later[i]
}

// losesUpdate reports whether a write loses an update: another holder changed the
// contender's register since this holder read it.
func (c faultContender) losesUpdate(w *history.Write) bool {
	if c.checks {
		return w.Accepted && w.Read != w.Before
	}
	return w.PlainRead != w.PlainBefore
}

// countHolder counts a holder if it is lost, and returns when it learned of the loss.
func (l *losses) countHolder(holder, next *history.Claim) (learnedAt int64, lost bool) {
	for _, t := range []int64{holder.Lost, holder.Woken} {
		if t > 0 && (learnedAt == 0 || t < learnedAt) {
			learnedAt = t
		}
	}
	superseded := next != nil && holder.Released > 0 && next.Got < holder.Released
	if lost = learnedAt > 0 || superseded; lost {
		l.LostHolders++
	}
	if lost && learnedAt == 0 {
		l.UnawareHolders++
	}
	return learnedAt, lost
}

// nextRunningTime returns the first time, not before at, at which the worker was running.
// A stopped holder learns nothing, so its delay begins when the stop ends.
func nextRunningTime(stops []history.Fault, at int64) int64 {
	for _, s := range stops {
		if s.From <= at && at < s.To {
			at = s.To
		}
	}
	return at
}
