package locktable

import (
	"slices"
	"time"
)

// Idle reports whether a table may forget the entry: only its last fence would be lost,
// and the clock has passed that fence. The next fence is then greater all the same, as
// long as the clock does not run back. A holder or a waiter whose time is over does not
// count, even if no step has removed it yet.
func (e *Entry) Idle(now Instant) bool { return e.Value.Bytes == nil && e.unused(now) }

// Forgettable is for a table that keeps an entry until retention after its last grant,
// and a value until retention after its last use: its writing, or the end of a later
// lease. It reports whether the table may forget the entry. The table keeps a fence for
// retention after its grant, so that fences rise even if the clock runs back by that
// much.
func (e *Entry) Forgettable(now Instant, retention time.Duration) bool {
	last := max(Instant(e.Fence), e.Value.At)
	for _, h := range e.Holders {
		last = max(last, h.Expires) // perhaps no step has noted this end in Value.At
	}
	return e.unused(now) && last.Add(retention) <= max(now, e.Day)
}

// unused reports whether the entry has nothing but its last fence and its value.
func (e *Entry) unused(now Instant) bool {
	return e.Rest.Len == 0 && e.Closed <= now && e.Fence < uint64(max(now, e.Day, 0)) &&
		!slices.ContainsFunc(e.Holders, func(h Holder) bool { return h.Expires.Add(h.LockDelay) > now }) &&
		!slices.ContainsFunc(e.Queue, func(w Waiter) bool { return w.Expires > now }) &&
		!slices.ContainsFunc(e.Broken, func(b Broken) bool { return b.Until > now }) &&
		!slices.ContainsFunc(e.Marks, func(m Mark) bool { return m.Until > now })
}

// Ends is the instant from which only the last fence and the value of the entry count. It
// is not earlier than either of them.
func (e *Entry) Ends() Instant {
	ends := max(e.Closed, e.Rest.Lapses, e.Value.At)
	for _, h := range e.Holders {
		ends = max(ends, h.Expires.Add(h.LockDelay))
	}
	for _, w := range e.Queue {
		ends = max(ends, w.Expires)
	}
	for _, b := range e.Broken {
		ends = max(ends, b.Until)
	}
	for _, m := range e.Marks {
		ends = max(ends, m.Until)
	}
	return max(ends, Instant(e.Fence))
}
