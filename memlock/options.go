package memlock

import (
	"time"
)

// Options for a Memory. The zero value, and nil, are fine.
type Options struct {
	// Now is the backend's clock; it alone decides what has expired. Default: the time of
	// the machine when the Memory was made, plus the monotonic time since, so it never
	// runs back. See [Clock] for tests.
	Now func() time.Time
}
