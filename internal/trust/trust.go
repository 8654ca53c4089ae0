// Package trust says how long a holder may trust its lease. All of it are values: it
// reads no clock.
package trust

import (
	"time"

	"github.com/pawl-go/pawl/internal/clock"
)

// A Term is how long a holder may trust its lease. It is counted from before the request
// was sent that granted or renewed the lease: the backend counts its TTL from the moment
// it handled that request, which is later, so the term ends before the lease does,
// whatever the network did to the reply.
type Term struct {
	from  clock.Reading
	lasts time.Duration // the lease's TTL less the margin
	ttl   time.Duration // how long the backend keeps the lease, from `from` at the least
}

// NewTerm is the term of a lease that lasts ttl from a request that was sent then.
func NewTerm(sent clock.Reading, ttl, margin time.Duration) Term {
	return Term{from: sent, lasts: ttl - margin, ttl: ttl}
}

// TTL is how long the lease lasts in the backend.
func (t Term) TTL() time.Duration { return t.ttl }

// Since is how long ago the request was sent from which the term counts.
func (t Term) Since(now clock.Reading) time.Duration { return now.Since(t.from) }

// Left is how much of the term is to come; at zero it is over.
func (t Term) Left(now clock.Reading) time.Duration { return t.lasts - t.Since(now) }

// LeaseLeft is how long the backend keeps the lease, at the least. It outlasts the term
// by the margin.
func (t Term) LeaseLeft(now clock.Reading) time.Duration { return t.ttl - t.Since(now) }

// Fresh reports whether enough of the term is left to begin work in it, or to pass it on:
// a quarter. With less, asking again is worth its while.
func (t Term) Fresh(now clock.Reading) bool { return t.lasts > 0 && t.Left(now) > t.lasts/4 }

// Renewed is the term after a renewal that was sent then. A renewal never shortens: with
// a smaller TTL than before, the old end may be the later one.
func (t Term) Renewed(sent clock.Reading, ttl, margin time.Duration) Term {
	if next := NewTerm(sent, ttl, margin); next.Left(sent) > t.Left(sent) {
		return next
	}
	return t
}

// DefaultMargin covers what separates two clocks of the same speed: the drift between
// them, and the time from a timer's end to the holder's hearing of it. A tenth of the TTL
// is far more than clocks drift; 10 ms is what a busy scheduler may take. Very short
// leases give half of themselves.
func DefaultMargin(ttl time.Duration) time.Duration {
	return min(max(ttl/10, 10*time.Millisecond), ttl/2)
}

// RequestTimeout bounds one request for a lease, so that a server that stopped answering
// costs a part of the term and not the whole.
func RequestTimeout(ttl time.Duration) time.Duration { return min(ttl/6, 3*time.Second) }
