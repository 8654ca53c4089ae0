package pawl

import (
	"math/rand/v2"
	"time"
)

// A reading is one look at the clocks that decide how long a lease may be trusted.
type reading struct {
	mono  time.Time     // the monotonic clock: NTP does not move it, but it stands still while the machine sleeps
	slept time.Duration // how long the machine has slept until then, see clock.go
}

// since is the time from r to now, sleep included.
func (r reading) since(now reading) time.Duration {
	return now.mono.Sub(r.mono) + now.slept - r.slept
}

// A term is how long a holder may trust its lease. It is counted from before the request was sent that
// granted or renewed the lease: the backend counts its TTL from the moment it handled that request, which is
// later, so the term ends before the lease does, whatever the network did to the reply.
type term struct {
	from  reading
	lasts time.Duration // the lease's TTL less the margin
	ttl   time.Duration // how long the backend keeps the lease, from `from` at the least
}

func newTerm(sent reading, ttl, margin time.Duration) term {
	return term{from: sent, lasts: ttl - margin, ttl: ttl}
}

// left is how much of the term is to come; at zero it is over.
func (t term) left(now reading) time.Duration { return t.lasts - t.from.since(now) }

// fresh reports whether enough of the term is left to begin work in it, or to pass it on: a quarter. With
// less, asking again is worth its while.
func (t term) fresh(now reading) bool { return t.lasts > 0 && t.left(now) > t.lasts/4 }

// leaseLeft is how long the backend keeps the lease, at the least. It outlasts the term by the margin.
func (t term) leaseLeft(now reading) time.Duration { return t.ttl - t.from.since(now) }

// defaultMargin covers what separates two clocks of the same speed: the drift between them, and the time from
// a timer's end to the holder's hearing of it. A tenth of the TTL is far more than clocks drift; 10 ms is what
// a busy scheduler may take. Very short leases give half of themselves.
func defaultMargin(ttl time.Duration) time.Duration {
	return min(max(ttl/10, 10*time.Millisecond), ttl/2)
}

// requestTimeout bounds one attempt, so that a server that stopped answering costs a part of the term and
// not the whole.
func requestTimeout(ttl time.Duration) time.Duration { return min(ttl/6, 3*time.Second) }

// renewIn is when to renew a lease that was just granted or renewed: at a third of its TTL, a little early at
// random so that leases that started together do not stay together; and never later than half of what is
// left, for a lease that came with less.
func renewIn(ttl, left time.Duration) time.Duration {
	third := ttl / 3
	return min(third-jitter(third/8), left/2)
}

// retryIn is the pause before the attempt after n failed ones: from 10 ms or so, doubling, to a twentieth of
// the TTL, so that a short outage is over soon and a long one is not hammered.
func retryIn(n int, ttl time.Duration) time.Duration {
	d := min(10*time.Millisecond<<min(n, 10), max(ttl/20, 2*time.Millisecond))
	return d - jitter(d/2)
}

// jitter is a random time below d.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}
