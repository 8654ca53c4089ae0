// Package check decides whether a history of pawl prove is correct. It shares no code
// with the product: it knows only the promises of a lock, and reads the history.
//
// A rule reports a violation only if there is no doubt. If the history has two readings,
// the rule takes the one in which the lock is correct.
//
// A history may prove nothing, for example if no fault had an effect or no lease was
// lost. Verdict.Weaknesses then has the reasons.
package check

import "github.com/pawl-go/pawl/cmd/pawl/prove/history"

// Run checks a history.
func Run(h *history.History) *Verdict {
	w := newWorld(h)
	for _, n := range w.names {
		w.overlap(n)
		w.fences(n)
		w.releaseLied(n)
		w.lossNotSeen(n)
		w.order(n)
		w.idle(n)
		w.linearizable(n)
	}
	w.register()
	w.leftovers()
	w.failures()
	w.allOrNothing()
	w.calmLoss()
	w.count()
	w.addWeaknesses() // after count, whose Numbers it reads
	return w.verdict()
}
