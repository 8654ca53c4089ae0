//go:build !linux && !windows

package clock

import "time"

var processStart = time.Now().Round(0)

// sinceBoot reads the wall clock, the only one here that goes on during sleep. When
// somebody sets it forward a lease may be given up early; when it is set back, the
// monotonic clock decides.
func sinceBoot() time.Duration { return time.Now().Round(0).Sub(processStart) }
