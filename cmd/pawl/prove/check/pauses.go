package check

import (
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// A history in which the machine paused a process for more than this part of the time
// proves nothing.
const pausedAtMost = 10 // a tenth

// countPauses counts the pauses that no fault made.
func (w *world) countPauses(pauses []history.Fault, stops timeline) {
	paused := map[int]time.Duration{}
	for _, p := range pauses {
		if stops.touched(p.Worker, p.From, p.To) {
			continue
		}
		d := time.Duration(p.To - p.From)
		paused[p.Worker] += d
		w.numbers.Pauses++
		w.numbers.Paused = max(w.numbers.Paused, paused[p.Worker])
		w.numbers.LongestPause = max(w.numbers.LongestPause, d)
	}
}

// ofAll repeats the controller's pauses for each worker, because a holder waits for the
// controller, which has the registers.
func (w *world) ofAll(pauses []history.Fault) (all []history.Fault) {
	workers := map[int]bool{}
	for _, c := range w.claims {
		workers[c.Worker] = true
	}
	for _, p := range pauses {
		all = append(all, p)
		if p.Worker != server {
			continue
		}
		for p.Worker = range workers {
			all = append(all, p)
		}
	}
	return all
}
