//go:build unix

package worker

import "golang.org/x/sys/unix"

// Now returns the time of the host's monotonic clock in nanoseconds. All processes of the
// host share this clock, unlike the monotonic part of a time.Time.
func Now() int64 { return read(unix.CLOCK_MONOTONIC) }

// processorTime returns the processor time that this process has used, in nanoseconds.
func processorTime() int64 { return read(unix.CLOCK_PROCESS_CPUTIME_ID) }

func read(clock int32) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(err) // every system has it
	}
	return t.Nano()
}
