package memlock

import "time"

// Options for a Memory. The zero value and nil work.
type Options struct {
	// Now is the backend's clock, which decides what has expired. Default: the machine's
	// time at the creation of the Memory, plus the monotonic time since, so it never runs
	// back. See [Clock] for tests.
	Now func() time.Time
}
