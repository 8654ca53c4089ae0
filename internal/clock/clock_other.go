//go:build !linux && !windows

package clock

import "time"

var processStart = time.Now().Round(0)

// sinceBoot reads the wall clock, the only clock here that goes on during sleep. If an
// operator sets it forward, the client may give up a lease early; if it is set back, the
// monotonic clock decides.
func sinceBoot() time.Duration { return time.Now().Round(0).Sub(processStart) }
