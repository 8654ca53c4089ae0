package check

import (
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

const (
	// Before a request ended without an answer, the server counts as slow for this time.
	unansweredFor = int64(time.Second)

	// One request in this many may have no answer.
	slowOften = 100
)

// slow finds requests that had no answer in time, although no fault was in their way: the
// server or the machine was too slow then. The lock is not to blame for that, so it
// counts as a fault of the run.
func (w *world) slow() (all []history.Fault) {
	for _, c := range w.claims {
		from, to := c.Asked, c.Answered
		why := c.Error
		switch {
		case c.Release == history.Unknown:
			from, to = c.Released, c.Freed
		case c.Lost != 0: // a renewal was not answered
			from, to, why = max(c.Got, c.Lost-w.run.TTL), c.Lost, c.Why
		case c.Answer != history.Unknown:
			continue
		}
		late := max(from, to-unansweredFor)
		if to == 0 || !unanswered(why) || w.touchedClaim(c, late-settled, to) {
			continue
		}
		w.numbers.Unanswered++
		all = append(all, history.Fault{Worker: c.Worker, From: from, To: to}, history.Fault{Worker: server, From: late, To: to})
	}
	return all
}

// unanswered reports whether an error says that an answer did not come in time.
func unanswered(text string) bool {
	for _, words := range []string{"no answer in time", "deadline exceeded", "timeout", "timed out"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}
