package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads CLOCK_BOOTTIME, which goes on while the machine is suspended.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0 // before Linux 2.6.39: the monotonic clock decides alone
	}
	return time.Duration(ts.Nano())
}
