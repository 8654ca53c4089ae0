package locktable

import (
	"slices"
	"time"
)

// Idle reports whether nothing would be lost with the entry but its last fence, which the
// clock has passed: it may be forgotten, and the next fence is greater all the same, as
// long as the clock does not run back. A holder or a waiter counts until its time is
// over, not until somebody finds that out.
func (e *Entry) Idle(now Instant) bool { return e.Value.Bytes == nil && e.unused(now) }

// Forgettable is for a table that keeps entries for a while after their last grant, and a
// value after its last use: its writing, or the end of a lease since. It reports whether
// nothing that is younger would be lost with the entry. A fence counts from its grant: it
// is kept for a clock that runs back, which has as far to go to meet it.
func (e *Entry) Forgettable(now Instant, retention time.Duration) bool {
	last := max(Instant(e.Fence), e.Value.At)
	for _, h := range e.Holders {
		last = max(last, h.Expires) // which nobody has found yet
	}
	return e.unused(now) && last.Add(retention) <= max(now, e.Day)
}

// unused reports whether there is nothing to the entry but its last fence and its value.
func (e *Entry) unused(now Instant) bool {
	return e.Rest.Len == 0 && e.Closed <= now && e.Fence < uint64(max(now, e.Day, 0)) &&
		!slices.ContainsFunc(e.Holders, func(h Holder) bool { return h.Expires.Add(h.LockDelay) > now }) &&
		!slices.ContainsFunc(e.Queue, func(w Waiter) bool { return w.Expires > now }) &&
		!slices.ContainsFunc(e.Broken, func(b Broken) bool { return b.Until > now }) &&
		!slices.ContainsFunc(e.Marks, func(m Mark) bool { return m.Until > now })
}

// Ends is when nothing of the entry counts any more but its last fence and its value,
// both of which are older.
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
