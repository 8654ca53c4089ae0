package main

import "time"

// These are the times for which pawl waits for a backend that does not answer.
const (
	lateAnswerTimeout = 500 * time.Millisecond  // after --wait, because a late answer may name the holder
	releaseTimeout    = 3 * time.Second         // for a release, and for closing the client
	signalTimeout     = 2500 * time.Millisecond // for the same after a signal, so that pawl ends within 3 s
)

// Tests set longer times.
var (
	// tryTimeout is the time for which pawl -n waits for an answer of the backend.
	tryTimeout = 3 * time.Second

	// completionTimeout bounds the requests of a completion, which offers no names on
	// failure.
	completionTimeout = 500 * time.Millisecond
)

// closeTimeout returns the longest time for closing after a failed claim. A caller whose
// --wait has passed should not wait much longer.
func (j *job) closeTimeout() time.Duration {
	if j.maxWait > 0 {
		return lateAnswerTimeout
	}
	return releaseTimeout
}
