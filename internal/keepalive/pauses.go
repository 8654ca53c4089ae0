package keepalive

import (
	"time"

	"github.com/pawl-go/pawl/internal/backoff"
)

// RenewIn returns the time until the next renewal of a lease. The renewal is due a third
// of the TTL after the request that granted or renewed the lease was sent. A random time
// is subtracted, so that leases granted together are not always renewed together. since
// is the time since that request. It may be more than a third of the TTL if the grant
// came from the queue, or if an engine that compares and swaps needed many round trips.
// Then the renewal is due at once. RenewIn returns at most half of left, the rest of the
// term.
func RenewIn(ttl, since, left time.Duration) time.Duration {
	third := ttl / 3
	return max(0, min(third-backoff.Random(third/8)-since, left/2))
}

// RetryIn returns the pause after n failed renewals in a row: about 10 ms at first,
// doubling up to a twentieth of the TTL, and 10 s at most. So the client recovers quickly
// from a short outage, and sends few requests in a long one.
func RetryIn(n int, ttl time.Duration) time.Duration {
	return backoff.JitterDown(backoff.Doubled(10*time.Millisecond, n, min(max(ttl/20, 2*time.Millisecond), 10*time.Second)))
}
