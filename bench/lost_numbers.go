package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// losses are the numbers of a contender in a run. A holder is lost if another client got
// its name while its section lasted, or if its lock notified it of the loss.
type losses struct {
	Contender string `json:"contender"`
	Sections  int    `json:"sections"`
	Updates   int    `json:"lost_updates"`
	Overlaps  int    `json:"overlaps"`

	Holders    int           `json:"lost_holders"`
	Untold     int           `json:"not_told"` // lost holders whose section ended before they knew of the loss
	ToldMedian time.Duration `json:"told_median_ns"`
	ToldWorst  time.Duration `json:"told_worst_ns"`

	WaitMedian time.Duration  `json:"wait_median_ns"`
	WaitP99    time.Duration  `json:"wait_p99_ns"`
	Faults     map[string]int `json:"faults"`

	failed string // how workers ended in a way that no fault explains
}

// lossesOf counts the losses in a history.
func (c loser) lossesOf(h *history.History) losses {
	verdict := check.Run(h)
	n := verdict.Numbers
	l := losses{
		Contender: c.name, Sections: n.Leases, Overlaps: verdict.Count[check.Overlap], Faults: n.FaultsByKind,
		WaitMedian: n.WaitMedian, WaitP99: n.WaitP99,
	}
	for _, w := range h.Writes {
		if c.lost(w) {
			l.Updates++
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
	var told []time.Duration
	for _, of := range holders {
		slices.SortFunc(of, func(a, b *history.Claim) int { return cmp.Compare(a.Got, b.Got) })
		for i, holder := range of {
			next := nextOf(of[i+1:])
			knew, lost := l.tell(holder, next)
			if lost && knew > 0 && next != nil {
				told = append(told, time.Duration(knew-runsAgain(stops[holder.Worker], next.Got)))
			}
		}
	}
	slices.Sort(told)
	if len(told) > 0 {
		l.ToldMedian, l.ToldWorst = told[len(told)/2], told[len(told)-1]
	}
	return l
}

// nextOf returns the first later grant on which a holder relied. A grant that was over
// when its answer came has ended no other lease.
func nextOf(later []*history.Claim) *history.Claim {
	i := slices.IndexFunc(later, func(c *history.Claim) bool { return c.Believed > c.Got })
	if i < 0 {
		return nil
	}
	return later[i]
}

// lost reports whether a write loses an update: another holder had changed the register
// since this holder read it. The register is the one that its users have.
func (c loser) lost(w *history.Write) bool {
	if c.checks {
		return w.Accepted && w.Read != w.Before
	}
	return w.PlainRead != w.PlainBefore
}

// tell counts a holder that was lost, and returns when the holder knew of the loss.
func (l *losses) tell(holder, next *history.Claim) (knew int64, lost bool) {
	for _, t := range []int64{holder.Lost, holder.Woken} {
		if t > 0 && (knew == 0 || t < knew) {
			knew = t
		}
	}
	superseded := next != nil && holder.Released > 0 && next.Got < holder.Released
	if lost = knew > 0 || superseded; lost {
		l.Holders++
	}
	if lost && knew == 0 {
		l.Untold++
	}
	return knew, lost
}

// runsAgain returns at, or, if the worker was stopped then, the end of the stop, because
// a stopped holder learns nothing.
func runsAgain(stops []history.Fault, at int64) int64 {
	for _, s := range stops {
		if s.From <= at && at < s.To {
			at = s.To
		}
	}
	return at
}
