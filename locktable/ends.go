package locktable

import (
	"slices"
	"time"
)

// Idle reports whether a table may forget the entry: it has only its last fence, and the
// clock has passed that fence. The next fence is then greater without the entry, unless
// the clock runs back. An expired holder or waiter does not count, even if no step has
// removed it yet.
func (e *Entry) Idle(now Instant) bool { return e.Value.Bytes == nil && e.unused(now) }

// Forgettable reports whether a table with a retention may forget the entry. Such a table
// keeps an entry for retention after its last grant, so that fences rise even if the
// clock runs back by that much. It keeps a value for retention after its last use: the
// write, or the end of a later lease.
func (e *Entry) Forgettable(now Instant, retention time.Duration) bool {
	last := max(Instant(e.Fence), e.Value.At)
	for _, h := range e.Holders {
		last = max(last, h.Expires) // Value.At may lack this end, if no step has removed the lease
	}
	return e.unused(now) && last.Add(retention) <= max(now, e.WallClock)
}

// unused reports whether the entry has only its last fence and its value.
func (e *Entry) unused(now Instant) bool {
	return e.Overflow.Len == 0 && e.Closed <= now && e.Fence < uint64(max(now, e.WallClock, 0)) &&
		!slices.ContainsFunc(e.Holders, func(h Holder) bool { return h.Expires.Add(h.LockDelay) > now }) &&
		!slices.ContainsFunc(e.Queue, func(w Waiter) bool { return w.Expires > now }) &&
		!slices.ContainsFunc(e.Broken, func(b Broken) bool { return b.Until > now }) &&
		!slices.ContainsFunc(e.Marks, func(m Mark) bool { return m.Until > now })
}

// Ends returns the instant from which only the last fence and the value count, if e has
// no Overflow. It is never earlier than the last fence or Value.At.
func (e *Entry) Ends() Instant {
	ends := max(e.Closed, e.Overflow.FirstExpiry, e.Value.At)
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
