package dashboard

import "time"

// The timeouts of what a request does.
const (
	breakTimeout     = 10 * time.Second       // for a break
	doctorTimeout    = 5 * time.Second        // for the doctor
	pingTimeout      = 2 * time.Second        // for the read that measures the backend's latency
	unlistedTimeout  = time.Second            // for the read of a name that the last scan has not found
	viewTimeout      = 120 * time.Millisecond // for a view that is no older than maxViewAge
	firstViewTimeout = 3 * time.Second        // for the first view
	writeTimeout     = 10 * time.Second       // for a write to a stream; after that, the browser counts as gone
)
