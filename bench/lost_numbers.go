package main

import (
	"cmp"
	"fmt"
	"iter"
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

// lossesOf reads a history.
func (c loser) lossesOf(lines iter.Seq2[history.Line, error]) (losses, error) {
	l := losses{Contender: c.name}
	var all []history.Line
	for line, err := range lines {
		if err != nil {
			return l, err
		}
		all = append(all, line)
	}
	verdict, err := check.Run(func(yield func(history.Line, error) bool) {
		for _, line := range all {
			if !yield(line, nil) {
				return
			}
		}
	})
	if err != nil {
		return l, err
	}
	n := verdict.Numbers
	l.Sections, l.Overlaps, l.Faults = n.Leases, verdict.Count[check.Overlap], n.FaultsByKind
	l.WaitMedian, l.WaitP99 = n.WaitMedian, n.WaitP99
	holders, stops := map[string][]*history.Claim{}, map[int][]*history.Fault{}
	for _, line := range all {
		switch {
		case line.Write != nil && c.lost(line.Write):
			l.Updates++
		case line.Claim != nil && line.Claim.Got > 0:
			holders[line.Claim.Name] = append(holders[line.Claim.Name], line.Claim)
		case line.Fault != nil && line.Fault.Kind == history.Stop:
			stops[line.Fault.Worker] = append(stops[line.Fault.Worker], line.Fault)
		case line.Worker != nil && !slices.Contains([]string{"done", "killed", "crashed"}, line.Worker.End):
			l.failed += fmt.Sprintf("; worker %d: %s", line.Worker.Worker, line.Worker.End)
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
	return l, nil
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
	for _, t := range []int64{holder.Lost, holder.Told} {
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
func runsAgain(stops []*history.Fault, at int64) int64 {
	for _, s := range stops {
		if s.From <= at && at < s.To {
			at = s.To
		}
	}
	return at
}
