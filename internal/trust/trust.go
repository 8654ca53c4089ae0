// Package trust computes how long a holder may rely on its lease. It reads no clock.
package trust

import (
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
)

// A Term is the time for which a holder may rely on its lease. It begins before the
// client sends the request that grants or renews the lease. The backend counts the TTL
// from the moment at which it handles that request, which is later. So the term ends
// before the lease does, however long the reply takes.
type Term struct {
	from   clock.Reading
	length time.Duration // the lease's TTL minus the margin
	ttl    time.Duration // the least time for which the backend keeps the lease, since from
}

// NewTerm returns the term of a lease that lasts ttl. sent is a time before its request.
func NewTerm(sent clock.Reading, ttl, margin time.Duration) Term {
	return Term{from: sent, length: ttl - margin, ttl: ttl}
}

// TTL returns the time for which the lease lasts in the backend.
func (t Term) TTL() time.Duration { return t.ttl }

// Since returns the time since the term began.
func (t Term) Since(now clock.Reading) time.Duration { return now.Since(t.from) }

// Left returns the rest of the term. At zero, the term is over.
func (t Term) Left(now clock.Reading) time.Duration { return t.length - t.Since(now) }

// LeaseLeft returns the least time for which the backend still keeps the lease. The lease
// outlasts the term by the margin.
func (t Term) LeaseLeft(now clock.Reading) time.Duration { return t.ttl - t.Since(now) }

// Fresh reports whether more than a quarter of the term is left: enough to begin work or
// to pass the lease on. With less, the client sends another request first.
func (t Term) Fresh(now clock.Reading) bool { return t.length > 0 && t.Left(now) > t.length/4 }

// Renewed returns the term after a renewal. sent is a time before its request. A renewal
// never shortens a term: if ttl is smaller than before, the later of both ends counts.
func (t Term) Renewed(sent clock.Reading, ttl, margin time.Duration) Term {
	if next := NewTerm(sent, ttl, margin); next.Left(sent) > t.Left(sent) {
		return next
	}
	return t
}

// DefaultMargin returns the time by which a term is shorter than its lease. It covers the
// drift between two clocks, and the delay from a timer to its goroutine. A tenth of the
// TTL is far more than clocks drift; a busy scheduler may take 10 ms. The margin is at
// most half of the TTL.
func DefaultMargin(ttl time.Duration) time.Duration {
	return min(max(ttl/10, 10*time.Millisecond), ttl/2)
}

// RequestTimeout returns the timeout of one request for a lease. It is a part of the TTL,
// so that more requests fit into the term if a server does not answer.
func RequestTimeout(ttl time.Duration) time.Duration { return min(ttl/6, 3*time.Second) }

// BreakDelay returns the time after which a holder that is not notified of a break has
// given up the lease with this fence: its TTL, or 0 if its Holder has none. An entry
// shows only the first fence of a range. So for another fence, the delay is the longest
// TTL of all holders.
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
