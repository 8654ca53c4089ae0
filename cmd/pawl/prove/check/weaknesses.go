package check

import (
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

const (
	minLeases       = 100 // fewer prove nothing
	maxSlowdown     = 3   // the faults may make the lock this many times slower
	unansweredRatio = 100 // one request of this many may have no answer
	gaveUpRatio     = 100 // porcupine may give up on one piece of this many
	pausedRatio     = 10  // pauses may take 1/pausedRatio of the time
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
	hasFaults := len(w.Run.Faults) > 0
	chosen := func(kinds ...string) bool {
		return slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains(w.Run.Faults, k) })
	}
	if hasFaults && n.Lost == 0 {
		say("No holder lost its lease, so nothing shows that a holder would learn of a loss.")
	}
	if hasFaults && n.TakenOver == 0 {
		say("No name was taken over from a holder that was dead or had lost it.")
	}
	if w.Run.Fenced && chosen(history.Stop, history.Overstay) && n.Stale == 0 {
		say("No write came too late, so the fences had nothing to refuse.")
	}
	if n.Leases == 0 {
		say("No lease was granted.")
	} else if n.Leases < minLeases {
		say("Only %s granted, too few to show anything.", plural(n.Leases, "lease was", "leases were"))
	}
	if n.CalmRate > 0 && hasFaults && n.FaultRate < n.CalmRate/maxSlowdown {
		say("With faults only %.1f leases a second were granted, compared to %.1f without. So the workers did too little.", n.FaultRate, n.CalmRate)
	}
	if n.Unanswered*unansweredRatio > n.Leases {
		say("%s no answer in time, although no fault delayed it: the database or this machine is too slow for the TTL.", plural(n.Unanswered, "request had", "requests had"))
	}
	if n.Paused > n.Took/pausedRatio {
		say("This machine kept a process from running for %s of %s: it is too busy.", length(n.Paused), length(n.Took))
	}
	if w.Run.Ordered && n.QueuePairs == 0 {
		say("No two claims waited so that the order of the queue could be checked.")
	}
	if n.Handovers == 0 {
		say("No claim ever waited for the release of another.")
	}
	if n.PorcupineGaveUp*gaveUpRatio > n.PorcupinePieces {
		say("The search for an order that explains all answers gave up on %d of the %d pieces of the history.", n.PorcupineGaveUp, n.PorcupinePieces)
	}
	if n.Writes == 0 {
		say("No holder wrote to a register.")
	}
}
