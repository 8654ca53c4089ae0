// Package check decides whether a history of pawl prove is right. It shares nothing with
// the product: it knows only what a lock promises, and what the history says.
//
// A rule either finds that the history breaks it, or finds nothing. It never guesses
// against the lock: of two readings of the history it takes the one that is in the lock's
// favour.
//
// A history can also be too poor to prove anything, because no fault did anything or no
// lease was lost. The package says that, too: see Verdict.Weaknesses.
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
	w.addWeaknesses() // reads what count has counted
	return w.verdict()
}
