package check

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

const (
	// After a fault of the server, clients need reconnectTime and two TTLs to reach it
	// and to have their places in its queues again. Clients of a cluster must find its
	// nodes first.
	reconnectTime = int64(3 * time.Second)

	// maxCrashTime is the longest time between the recorded end of a Crash and the end of
	// the process.
	maxCrashTime = int64(time.Second)

	// If a request ended without an answer, the server counts as slow for unansweredFor
	// before that.
	unansweredFor = int64(time.Second)
)

// sortFaults sorts the faults that had an effect into timelines.
func (w *world) sortFaults() {
	var all, stops, network, dataLosses, pauses []history.Fault
	w.firstFault = math.MaxInt64
	for _, f := range w.Faults {
		if f.Kind == history.Pause {
			pauses = append(pauses, f)
			continue
		}
		w.firstFault = min(w.firstFault, f.From)
		if f.Hit <= 0 { // no effect before the controller stopped waiting for it
			continue
		}
		w.Numbers.FaultsByKind[f.Kind]++
		switch f.Kind {
		case history.Overstay:
			continue // it delays no claim
		case history.Crash:
			// From is the time of the order; the worker crashes in its next section.
			f.From, f.To = f.To-maxCrashTime, f.To+maxCrashTime
		case history.Stop:
			stops = append(stops, f)
		case history.Cut, history.Delay, history.Reorder, history.Swallow, history.Silence:
			network = append(network, f)
		case history.ServerStop, history.ServerKill, history.ServerRestart: // one at a time
			w.downtime += f.To - f.From
		}
		if w.Run.Forgets && slices.Contains([]string{history.ServerKill, history.ServerRestart, history.FailOver}, f.Kind) {
			dataLosses = append(dataLosses, f)
		}
		if f.Worker == server {
			f.To += 2*w.Run.TTL + reconnectTime
		}
		all = append(all, f)
	}
	w.countPauses(pauses, newTimeline(stops))
	all = append(all, pauses...)
	w.faults, w.stops, w.network = newTimeline(all), newTimeline(append(stops, w.pausesOfWorkers(pauses)...)), newTimeline(network)
	w.dataLosses = newTimeline(dataLosses)
	w.faults = newTimeline(append(all, w.slowTimes()...))
}

// countPauses counts the pauses that no fault caused.
func (w *world) countPauses(pauses []history.Fault, stops timeline) {
	n, paused := &w.Numbers, map[int]time.Duration{}
	for _, p := range pauses {
		if stops.touched(p.Worker, p.From, p.To) {
			continue
		}
		d := time.Duration(p.To - p.From)
		paused[p.Worker] += d
		n.Pauses++
		n.Paused, n.LongestPause = max(n.Paused, paused[p.Worker]), max(n.LongestPause, d)
	}
}

// pausesOfWorkers returns the pauses, the controller's ones also as pauses of each
// worker, because holders wait for the controller, which has the registers.
func (w *world) pausesOfWorkers(pauses []history.Fault) (all []history.Fault) {
	workers := map[int]bool{}
	for _, c := range w.Claims {
		workers[c.Worker] = true
	}
	for _, p := range pauses {
		all = append(all, p)
		if p.Worker == server {
			for p.Worker = range workers {
				all = append(all, p)
			}
		}
	}
	return all
}

// slowTimes returns faults for the requests that had no answer in time although no fault
// delayed them. The server or the machine was too slow then, for which no rule may blame
// the lock.
func (w *world) slowTimes() (all []history.Fault) {
	for _, c := range w.Claims {
		from, to, reason := c.Asked, c.Answered, c.Error
		switch {
		case c.Release == history.Unknown:
			from, to = c.Released, c.Freed
		case c.Lost != 0: // a renewal was not answered
			from, to, reason = max(c.Got, c.Lost-w.Run.TTL), c.Lost, c.Why
		case c.Answer != history.Unknown:
			continue
		}
		late := max(from, to-unansweredFor)
		if to == 0 || !unanswered(reason) || w.touchedClaim(c, late-settleTime, to) {
			continue
		}
		w.Numbers.Unanswered++
		all = append(all, history.Fault{Worker: c.Worker, From: from, To: to}, history.Fault{Worker: server, From: late, To: to})
	}
	return all
}

// unanswered reports whether an error says that an answer did not come in time.
func unanswered(text string) bool {
	return slices.ContainsFunc([]string{"no answer in time", "deadline exceeded", "timeout", "timed out"},
		func(words string) bool { return strings.Contains(text, words) })
}
