package check

import (
	"fmt"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// leftovers finds names that still had holders or waiters after the last worker had
// closed and all leases had expired.
func (w *world) leftovers() {
	inspected := map[string]bool{}
	for _, l := range w.Left {
		inspected[l.Name] = true
		if l.Holders > 0 || l.Waiters > 0 {
			w.add(Violation{Rule: Left, Name: l.Name, From: l.At, To: l.At},
				"After all workers had closed, %q still had %s and %s at %s.",
				l.Name, plural(l.Holders, "holder", "holders"), plural(l.Waiters, "waiter", "waiters"), at(l.At))
		}
	}
	for _, n := range w.Run.Names {
		if !inspected[n.Name] {
			w.Weaknesses = append(w.Weaknesses, fmt.Sprintf("The last state of %q was not read, so it may still have holders or waiters.", n.Name))
		}
	}
}

// failures finds processes whose end no fault explains, and a run that ended too early.
func (w *world) failures() {
	for _, p := range w.Workers {
		switch p.End {
		case "done", "killed", "crashed":
		default:
			w.add(Violation{Rule: WorkerFailed, From: p.From, To: p.To},
				"Process %d of worker %d (PID %d) failed at %s: %s", p.Life, p.Worker, p.PID, at(p.To), p.End)
		}
	}
	if w.End.Error != "" {
		w.add(Violation{Rule: RunFailed, From: w.End.At, To: w.End.At},
			"The run ended at %s before its time: %s", at(w.End.At), w.End.Error)
	}
}

// allOrNothing finds claims of several names together of which the server granted only
// some. A process that died may have reported only some of its grants.
func (w *world) allOrNothing() {
	groups := map[int64][]*history.Claim{}
	for _, c := range w.Claims {
		if c.Group != 0 {
			groups[c.Group] = append(groups[c.Group], c)
		}
	}
	for _, claims := range groups {
		var got, not []*history.Claim
		differentTimes := false
		for _, c := range claims {
			switch {
			case c.Answer == history.Granted:
				got = append(got, c)
			case c.Answered != 0 || c.Died == 0:
				not = append(not, c)
			default:
				continue
			}
			differentTimes = differentTimes || c.Answered != claims[0].Answered
		}
		switch {
		case len(got) == 0:
		case len(not) > 0:
			w.addPartialGrant(got[0], not[0], "it got %q but not %q", got[0].Name, not[0].Name)
		case differentTimes:
			w.addPartialGrant(got[0], got[len(got)-1], "it did not get them at the same time")
		}
	}
}

func (w *world) addPartialGrant(a, b *history.Claim, what string, args ...any) {
	w.add(Violation{Rule: AllOrNothing, Name: a.Name, From: a.Asked, To: a.Got, Claims: ids(a, b)},
		"%s asked at %s for several names together, and "+what+".", append([]any{upper{a}, at(a.Asked)}, args...)...)
}
