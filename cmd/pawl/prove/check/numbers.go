package check

import (
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// count counts the events of the history, correct or not.
func (w *world) count() {
	n := &w.Numbers
	n.Took = time.Duration(w.Last)
	var waits, handovers []int64
	for _, c := range w.Claims {
		switch c.Answer {
		case history.Held:
			n.Refused++
		case history.TimedOut:
			n.TimedOut++
		case history.Unknown:
			n.Unknown++
		}
		if c.Answer != history.Granted {
			continue
		}
		n.Leases++
		if c.How == history.Wait {
			waits = append(waits, c.Got-c.Asked)
		}
		if c.Lost != 0 || c.Release == history.Late {
			n.Lost++
		}
		if c.Woken != 0 {
			n.Woken++
		}
		if c.Died != 0 {
			n.Died++
		}
	}
	for _, name := range w.names {
		for i, before := range name.granted[:max(len(name.granted)-1, 0)] {
			switch c := name.granted[i+1]; {
			case before.Release == history.OK && c.Asked < before.Released && c.Got >= before.Released:
				handovers = append(handovers, c.Got-before.Released)
			case before.Release != history.OK && (before.Lost != 0 || before.Died != 0 || before.Release == history.Late):
				n.TakenOver++
			}
		}
	}
	slices.Sort(waits)
	slices.Sort(handovers)
	n.WaitMedian, n.WaitP99, n.WaitMax = quantile(waits, 50), quantile(waits, 99), quantile(waits, 100)
	n.HandoverMedian, n.Handovers = quantile(handovers, 50), len(handovers)
	n.CalmRate, n.FaultRate = w.rate(history.Calm, 0), w.rate(history.Faults, w.downtime)
}

// quantile returns the value below which the given percentage of the values lies.
func quantile(sorted []int64, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return time.Duration(sorted[min(len(sorted)-1, len(sorted)*percent/100)])
}

// rate returns the grants per second in a phase. downtime is the part of the phase in
// which the server was down.
func (w *world) rate(phase string, downtime int64) float64 {
	from, to, ok := w.Phase(phase)
	if !ok || to-from <= downtime {
		return 0
	}
	leases := 0
	for _, n := range w.names {
		for _, c := range n.granted {
			if from <= c.Got && c.Got < to {
				leases++
			}
		}
	}
	return float64(leases) / time.Duration(to-from-downtime).Seconds()
}
