package check

import "github.com/pawl-go/pawl/cmd/pawl/prove/history"

// calmLoss finds leases that were lost, and claims that failed, before the first fault.
// A claim that was asked for before the calm part may have failed because processes were
// starting.
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

// mishap returns an event of a claim that only a fault may cause, and the time when a
// worker saw it. If there was none, what is empty.
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
