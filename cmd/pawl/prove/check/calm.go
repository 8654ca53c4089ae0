package check

import "github.com/pawl-go/pawl/cmd/pawl/prove/history"

// calmLoss finds leases that were lost, and claims that failed, in the calm phase before
// the first fault. It skips claims that were asked for before the calm phase, because the
// processes may still have been starting.
func (w *world) calmLoss() {
	begun, calmEnd, ok := w.Phase(history.Calm)
	if !ok {
		return
	}
	calmEnd = min(calmEnd, w.firstFault)
	for _, c := range w.Claims {
		when, what := mishap(c)
		if c.Asked < begun || when == 0 || when >= calmEnd || w.touchedClaim(c, c.Asked-settleTime, when) {
			continue
		}
		w.add(Violation{Rule: CalmLoss, Name: c.Name, From: c.Asked, To: when, Claims: ids(c)},
			"%s asked for %q at %s, and at %s %s. No fault had begun.", upper{c}, c.Name, at(c.Asked), at(when), what)
	}
}

// mishap returns an event of a claim that only a fault can cause, and the time when a
// worker saw it; 0 if there was no such event.
func mishap(c *history.Claim) (when int64, what string) {
	because := func(s string) string {
		if s == "" {
			return ""
		}
		return " (" + s + ")"
	}
	switch {
	case c.Lost != 0:
		return c.Lost, "its lease was lost" + because(c.Why)
	case c.Woken != 0:
		return c.Woken, "the lock woke it up because its lease was lost" + because(c.Why)
	case c.Release == history.Late:
		return c.Freed, "its release found that the lease was over"
	case c.Release == history.Unknown:
		return c.Freed, "its release failed" + because(c.Error)
	case c.Answer == history.Unknown && c.Answered != 0:
		return c.Answered, "the claim failed" + because(c.Error)
	case c.Died != 0:
		return c.Died, "its process was dead"
	}
	return 0, ""
}
