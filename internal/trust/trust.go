// Package trust computes how long a holder may trust its lease. It works on values only,
// and reads no clock.
package trust

import (
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
)

// A Term is the time for which a holder may trust its lease. It counts from before the
// sending of the request that granted or renewed the lease. The backend counts its TTL
// from the moment it handled that request, which is later. So the term ends before the
// lease does, however long the reply took.
type Term struct {
	from  clock.Reading
	lasts time.Duration // the lease's TTL less the margin
	ttl   time.Duration // how long the backend keeps the lease, at least, counted from `from`
}

// NewTerm is the term of a lease that lasts ttl from a request that was sent then.
func NewTerm(sent clock.Reading, ttl, margin time.Duration) Term {
	return Term{from: sent, lasts: ttl - margin, ttl: ttl}
}

// TTL returns the time for which the lease lasts in the backend.
func (t Term) TTL() time.Duration { return t.ttl }

// Since returns the time since the term began.
func (t Term) Since(now clock.Reading) time.Duration { return now.Since(t.from) }

// Left is the rest of the term; at zero it is over.
func (t Term) Left(now clock.Reading) time.Duration { return t.lasts - t.Since(now) }

// LeaseLeft returns the least time for which the backend still keeps the lease. The lease
// outlasts the term by the margin.
func (t Term) LeaseLeft(now clock.Reading) time.Duration { return t.ttl - t.Since(now) }

// Fresh reports whether enough of the term is left to begin work in it, or to pass it on:
// a quarter. With less, another request is worth its cost.
func (t Term) Fresh(now clock.Reading) bool { return t.lasts > 0 && t.Left(now) > t.lasts/4 }

// Renewed is the term after a renewal that was sent then. A renewal never shortens a
// term: with a smaller TTL than before, the old end may be the later one.
func (t Term) Renewed(sent clock.Reading, ttl, margin time.Duration) Term {
	if next := NewTerm(sent, ttl, margin); next.Left(sent) > t.Left(sent) {
		return next
	}
	return t
}

// DefaultMargin covers the drift between two clocks, and the time from a timer's end
// until the holder learns of it. A tenth of the TTL is far more than clocks drift; a busy
// scheduler may take 10 ms. A very short lease gives up half of its TTL.
func DefaultMargin(ttl time.Duration) time.Duration {
	return min(max(ttl/10, 10*time.Millisecond), ttl/2)
}

// RequestTimeout bounds one request for a lease, so that a server that stopped answering
// costs a part of the term and not the whole.
func RequestTimeout(ttl time.Duration) time.Duration { return min(ttl/6, 3*time.Second) }

// BreakDelay returns the time after which a holder that does not learn of a break gives
// up the lease with this fence: its TTL, or 0 if that is not shown. Only the first fence
// of a range is shown; for another fence the delay is the longest TTL of all holders.
func BreakDelay(holders []driver.Holder, fence uint64) time.Duration {
	if i := slices.IndexFunc(holders, func(h driver.Holder) bool { return h.Fence == fence }); i >= 0 {
		return holders[i].TTL
	}
	longest := time.Duration(0)
	for _, h := range holders {
		longest = max(longest, h.TTL)
	}
	return longest
}
