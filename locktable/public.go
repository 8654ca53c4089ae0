package locktable

import (
	"bytes"
	"slices"

	"github.com/pawl-go/pawl/driver"
)

// Public returns the entry for Inspect: without tokens, and without expired leases and
// places. Callers may change what it returns.
func (e *Entry) Public(now Instant, name string) driver.Entry {
	seen := Entry{Fence: e.Fence, Closed: e.Closed, Holders: slices.Clone(e.Holders), Queue: slices.Clone(e.Queue)}
	seen.expire(now)
	out := driver.Entry{Name: name, Fence: seen.Fence, ClosedFor: max(0, now.Until(seen.Closed))}
	out.Holders = make([]driver.Holder, len(seen.Holders))
	for i := range seen.Holders {
		out.Holders[i] = seen.Holders[i].public(now, e.WallClock)
	}
	out.Value, out.ValueFence = bytes.Clone(e.Value.Bytes), e.Value.Fence
	for _, w := range seen.Queue {
		out.Waiters = append(out.Waiters, driver.Waiter{
			Permits: w.Weight, Limit: w.Limit, Owner: w.Owner.Clone(), Since: w.Since.Time(), ExpiresIn: now.Until(w.Expires),
		})
	}
	return out
}

// public returns the holder for Inspect. The table's clock, and so Since, may be hours
// behind the time of day. Then the fence tells the time of day of the grant, or a later
// one if the last fence before it was ahead of the time of day.
func (h *Holder) public(now, wallClock Instant) driver.Holder {
	since := h.Since
	if at := Instant(h.Fence); since < at && at <= wallClock {
		since = at
	}
	return driver.Holder{
		Fence: h.Fence, Permits: h.Weight, Limit: h.Limit, Owner: h.Owner.Clone(),
		Since: since.Time(), TTL: h.TTL, ExpiresIn: now.Until(h.Expires), Released: h.Token.IsZero(),
	}
}

// Holds reports whether the lease whose range of fences contains fence still holds the
// name. A released lease with a minimum hold does not.
func (e *Entry) Holds(now Instant, fence uint64) bool {
	return slices.ContainsFunc(e.Holders, func(h Holder) bool {
		return h.Fence <= fence && fence-h.Fence < uint64(h.Fences) && h.Expires > now && !h.Token.IsZero()
	})
}
