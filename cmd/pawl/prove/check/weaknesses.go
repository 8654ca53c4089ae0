package check

import (
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

const (
	minLeases       = 100 // fewer prove nothing
	maxSlowdown     = 3   // the faults may make the lock this many times slower
	unansweredRatio = 100 // one request in this many may have no answer
	gaveUpRatio     = 100 // porcupine may give up on one piece in this many
	pausedRatio     = 10  // the machine may pause a process for one part in this many of the time
)

// addWeaknesses adds the reasons why a history without a violation proves nothing.
func (w *world) addWeaknesses() {
	n := &w.Numbers
	say := func(format string, args ...any) { w.Weaknesses = append(w.Weaknesses, fmt.Sprintf(format, args...)) }
	if w.End.Interrupted {
		say("The run was interrupted after %s.", at(w.End.At))
		return // the other reasons follow from that
	}
	for _, kind := range w.Run.Faults {
		if n.FaultsByKind[kind] == 0 {
			say("No fault of the kind %q did anything.", kind)
		}
	}
	disturbed := len(w.Run.Faults) > 0
	chosen := func(kinds ...string) bool {
		return slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains(w.Run.Faults, k) })
	}
	if disturbed && n.Lost == 0 {
		say("No holder lost its lease, so nothing shows that a holder would learn of a loss.")
	}
	if disturbed && n.TakenOver == 0 {
		say("No name was taken over from a holder that was dead or had lost it.")
	}
	if w.Run.Fenced && chosen(history.Stop, history.Overstay) && n.Stale == 0 {
		say("No write came too late, so that the fences had nothing to refuse.")
	}
	if n.Leases == 0 {
		say("No lease was granted.")
	} else if n.Leases < minLeases {
		say("Only %s granted, too few to show anything.", plural(n.Leases, "lease was", "leases were"))
	}
	if n.CalmRate > 0 && disturbed && n.FaultRate < n.CalmRate/maxSlowdown {
		say("With faults only %.1f leases a second were granted, and %.1f without: the workers did too little.", n.FaultRate, n.CalmRate)
	}
	if n.Unanswered*unansweredRatio > n.Leases {
		say("%s no answer in time, although no fault was in the way: the database or this machine is too slow for the TTL.", plural(n.Unanswered, "request had", "requests had"))
	}
	if n.Paused > n.Took/pausedRatio {
		say("This machine kept a process from running for %s of %s: it is too busy.", length(n.Paused), length(n.Took))
	}
	if w.Run.Ordered && n.QueuePairs == 0 {
		say("No two claims waited in such a way that the queue could have served them in the wrong order.")
	}
	if n.Handovers == 0 {
		say("No claim ever waited for the release of another.")
	}
	if n.PorcupineGaveUp*gaveUpRatio > n.PorcupinePieces {
		say("The search for an order that explains all answers gave up on %d of %d pieces of the history.", n.PorcupineGaveUp, n.PorcupinePieces)
	}
	if n.Writes == 0 {
		say("No holder wrote to a register.")
	}
}
