package keepalive

import (
	"time"

	"github.com/pawl-go/pawl/internal/backoff"
)

// RenewIn returns the time until a lease with that much of its term left is to be
// renewed: at a third of its TTL, counted from the sending of the request that granted or
// renewed it. It is a little early at random, so that leases that started together do not
// stay together. That request may be long ago if the grant came from the queue, or if an
// engine that compares and swaps needed many round trips. If a third has passed already,
// the lease is renewed at once. RenewIn returns no more than half of left, because some
// leases begin with little time left.
func RenewIn(ttl, since, left time.Duration) time.Duration {
	third := ttl / 3
	return max(0, min(third-backoff.Below(third/8)-since, left/2))
}

// RetryIn is the pause before the renewal after n failed ones: about 10 ms, doubling up
// to a twentieth of the TTL and to 10 s. So the client recovers quickly from a short
// outage, and does not hammer the backend in a long one.
func RetryIn(n int, ttl time.Duration) time.Duration {
	return backoff.Early(backoff.Doubled(10*time.Millisecond, n, min(max(ttl/20, 2*time.Millisecond), 10*time.Second)))
}
