package check

import (
	"iter"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// Run checks a history. The error is only about reading it.
func Run(lines iter.Seq2[history.Line, error]) (*Verdict, error) {
	w, err := read(lines)
	if err != nil {
		return nil, err
	}
	for _, n := range w.names {
		w.overlap(n)
		w.fences(n)
		w.releaseLied(n)
		w.lostNotTold(n)
		w.order(n)
		w.idle(n)
		w.linearizable(n)
	}
	w.register()
	w.left()
	w.failures()
	w.allOrNothing()
	w.calmLoss()
	w.count()
	w.blindness()
	return w.verdict(), nil
}
