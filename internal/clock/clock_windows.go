package clock

import (
	"time"

	"golang.org/x/sys/windows"
)

// sinceBoot reads the interrupt time, which includes sleep and hibernation.
func sinceBoot() time.Duration { return windows.DurationSinceBoot() }
