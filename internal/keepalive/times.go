package keepalive

import (
	"time"

	"github.com/pawl-go/pawl/internal/backoff"
)

// RenewIn is when to renew a lease that was granted or renewed, with that much of its
// term left: at a third of its TTL from the sending of what made it last, a little early
// at random so that leases that started together do not stay together. That may have been
// sent long ago: a grant that is passed on lasts only as long as the place in the queue
// does, and an engine that compares and swaps may need many round trips for one request.
// What has used up its third already is renewed at once. It is never later than half of
// what is left, for a lease that came with less.
func RenewIn(ttl, since, left time.Duration) time.Duration {
	third := ttl / 3
	return max(0, min(third-backoff.Below(third/8)-since, left/2))
}

// RetryIn is the pause before the renewal after n failed ones: from 10 ms or so,
// doubling, to a twentieth of the TTL and to 10 s, so that a short outage is over soon
// and a long one is not hammered.
func RetryIn(n int, ttl time.Duration) time.Duration {
	return backoff.Early(backoff.Doubled(10*time.Millisecond, n, min(max(ttl/20, 2*time.Millisecond), 10*time.Second)))
}
