package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// maxViolations is the number of violations that a verdict keeps.
const maxViolations = 1000

// A Verdict is the result of checking a history by the rules.
type Verdict struct {
	// Violations are in the order of time. At most 1000 are kept, at least one of each
	// broken rule.
	Violations []Violation

	// Count is the number of violations of each rule, including the ones not kept.
	Count map[string]int

	// Weaknesses has the reasons why the history proves nothing even without a violation.
	// Each is a sentence; the report shows the first one in its headline.
	Weaknesses []string

	// Announced is the number of overlaps that Run.Forgets excuses.
	Announced int

	Numbers Numbers
}

// A Violation is one place where a history breaks a rule.
type Violation struct {
	Rule   string  `json:"rule"`
	Name   string  `json:"name"`   // of the lock; empty if it concerns no lock
	Text   string  `json:"text"`   // one or two sentences
	From   int64   `json:"from"`   // when it began, as in the history
	To     int64   `json:"to"`     // when it ended; equal to From for a single event
	Claims []int64 `json:"claims"` // the IDs of the claims that it concerns
}

// Numbers counts the events of a history, whether or not they break a rule.
type Numbers struct {
	Leases   int // claims that were granted
	Refused  int // claims that were answered with Held
	TimedOut int
	Unknown  int

	// Unanswered is the number of claims, renewals and releases that had no answer in
	// time although no fault delayed them.
	Unanswered int

	// Pauses is the number of times that the machine kept a process from running for
	// history.PauseAtLeast or longer.
	Pauses       int
	Paused       time.Duration // the sum for the worker with the longest sum
	LongestPause time.Duration

	Lost      int // leases whose holder saw that they were lost
	Woken     int // leases whose holder the lock woke up because of their loss
	Died      int // leases whose process died before they were over
	TakenOver int // grants after a lease that was lost or whose holder died

	Writes    int // writes accepted by the register that checks fences
	Stale     int // writes refused by the same register because of their fence
	PlainLost int // updates lost by the register that checks no fences

	// FaultsByKind is the number of faults of each kind, without faults whose Hit is 0.
	FaultsByKind map[string]int

	// QueuePairs is the number of pairs of claims whose order in the queue could be
	// checked.
	QueuePairs int

	PorcupineNames      int // names whose whole history porcupine decided
	PorcupinePieces     int // the pieces into which their histories were cut
	PorcupineOperations int
	PorcupineGaveUp     int // pieces that took too long or have too many operations

	CalmRate  float64 // leases a second in the calm phase
	FaultRate float64 // the same in the phase with faults, without the server's downtime

	WaitMedian time.Duration // from Asked to Got, of granted claims that waited
	WaitP99    time.Duration
	WaitMax    time.Duration

	// HandoverMedian is the median time from a release to the next grant, if the next
	// claim was asked for before the release.
	HandoverMedian time.Duration
	Handovers      int

	// MaxLossDelay is the longest time from a grant that ended a lease until the lease's
	// holder saw the loss. The time in which the holder was stopped does not count.
	MaxLossDelay time.Duration

	Took time.Duration // from the first line to the last
}

// add counts a violation, and keeps the first ones. It formats only the texts of these,
// because a broken history may have millions.
func (w *world) add(v Violation, format string, args ...any) {
	w.Count[v.Rule]++
	if key := [2]string{v.Rule, v.Name}; len(w.found[key]) < maxViolations {
		v.Text = fmt.Sprintf(format, args...)
		w.found[key] = append(w.found[key], v)
	}
}

// verdict returns the first violations in the order of time, with at least one of each
// broken rule.
func (w *world) verdict() *Verdict {
	v := w.Verdict
	for _, found := range w.found {
		v.Violations = append(v.Violations, found...)
	}
	slices.SortFunc(v.Violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Name, b.Name), slices.Compare(a.Claims, b.Claims), cmp.Compare(a.Text, b.Text))
	})
	if len(v.Violations) > maxViolations {
		room := maxViolations - len(v.Count)
		had := map[string]bool{}
		v.Violations = slices.DeleteFunc(v.Violations, func(x Violation) bool {
			if !had[x.Rule] {
				had[x.Rule] = true
				return false
			}
			room--
			return room < 0
		})
	}
	return &v
}
