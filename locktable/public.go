package locktable

import (
	"bytes"
	"maps"
	"slices"

	"github.com/pawl-go/pawl/driver"
)

// shown copies an owner, so that a caller who changes the labels does not change the
// entry.
func shown(o driver.Owner) driver.Owner {
	o.Labels = maps.Clone(o.Labels)
	return o
}

// Public is the entry as it may be shown: without tokens, and without what has expired.
func (e *Entry) Public(now Instant, name string) driver.Entry {
	seen := Entry{Fence: e.Fence, Closed: e.Closed, Holders: slices.Clone(e.Holders), Queue: slices.Clone(e.Queue)}
	seen.expire(now)
	out := driver.Entry{Name: name, Fence: seen.Fence, ClosedFor: max(0, now.Until(seen.Closed))}
	out.Holders = make([]driver.Holder, len(seen.Holders))
	for i := range seen.Holders {
		out.Holders[i] = seen.Holders[i].public(now)
	}
	out.Value, out.ValueFence = bytes.Clone(e.Value.Bytes), e.Value.Fence
	for _, w := range seen.Queue {
		out.Waiters = append(out.Waiters, driver.Waiter{
			Permits: w.Weight, Limit: w.Limit, Owner: shown(w.Owner), Since: w.Since.Time(), ExpiresIn: now.Until(w.Expires),
		})
	}
	return out
}

func (h *Holder) public(now Instant) driver.Holder {
	return driver.Holder{
		Fence: h.Fence, Permits: h.Weight, Limit: h.Limit, Owner: shown(h.Owner),
		Since: h.Since.Time(), TTL: h.TTL, ExpiresIn: now.Until(h.Expires), Released: h.Token.IsZero(),
	}
}

// Holds reports whether the lease that has this fence, or whose range of fences contains
// it, still holds the name. A lease that was released, and is only kept for its minimum
// hold, does not.
func (e *Entry) Holds(now Instant, fence uint64) bool {
	return slices.ContainsFunc(e.Holders, func(h Holder) bool {
		return h.Fence <= fence && fence-h.Fence < uint64(h.Fences) && h.Expires > now && !h.Token.IsZero()
	})
}
