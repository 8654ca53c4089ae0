package locktable

import (
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// promote grants the claim at the head of the queue, and then the next, until a claim
// does not fit. No claim passes a claim that waits, so the queue is fair.
//
// The waiter may be dead. So the grant lasts only as long as the place would have lasted,
// and a dead waiter costs the others only its QueueTTL. A live waiter can rely on the
// grant for its QueueTTL, counted from the time at which it sent its last attempt: the
// backend handled that attempt, and then granted, after that time.
func (e *Entry) promote(now Instant) {
	for len(e.Queue) > 0 && e.fits(now, e.Queue[0].Weight, e.Queue[0].Limit) {
		w := e.Queue[0]
		e.Queue, e.headMustAsk = slices.Delete(e.Queue, 0, 1), true
		if !e.valueBelow(w.ValueBelow) { // the condition was true when the waiter arrived, and is false now
			e.Changed, e.Visible = true, true
			e.signal(w.Inbox, driver.Signal{Kind: driver.SignalRetry, Token: w.Token})
			continue
		}
		h := e.grant(now, Holder{ClaimInfo: w.ClaimInfo, Expires: w.Expires}, 0, w.Value)
		e.signal(w.Inbox, driver.Signal{Kind: driver.SignalGranted, Token: w.Token, Fence: h.Fence, Fences: h.Fences})
	}
	if len(e.Queue) == 0 && e.Overflow.Len > 0 && e.fits(now, 1, driver.Unlimited) {
		e.NeedsMore = true // a claim may fit, and the next waiter is not loaded
	}
}

// fits reports whether a claim could be granted if no waiter were ahead of it. A name
// with as many holders as can be stored has no room.
func (e *Entry) fits(now Instant, weight, limit int) bool {
	if now < e.Closed || len(e.Holders) >= maxClaims {
		return false
	}
	held := int64(0) // the sum of several Exclusive weights does not fit an int on every platform
	for _, h := range e.Holders {
		held += int64(h.Weight)
	}
	return held+int64(weight) <= int64(limit)
}

// grant adds a holder. Its first fence is greater than the last fence, so fences rise
// even if the clock ran back. It is at least the time in microseconds, so fences rise
// even if the entry was lost or forgotten. minFence is the claim's MinFence; it counts
// only up to MaxLead ahead of the time.
func (e *Entry) grant(now Instant, h Holder, minFence uint64, value []byte) Holder {
	if h.Weight != driver.Exclusive {
		h.Fences = 1 // only exclusive holders get ranges, because ranges of several holders could overlap
	}
	h.Fences = max(h.Fences, 1)
	h.Since = now.Add(e.Uncertainty)
	h.Fence = e.Fence + 1
	if base := max(now, e.WallClock); base > 0 {
		h.Fence = max(h.Fence, uint64(base), min(minFence, uint64(base.Add(driver.MaxLead))))
	}
	e.Fence = h.Fence + uint64(h.Fences) - 1
	e.write(now, &h, value)
	e.Holders = append(e.Holders, h)
	e.Changed, e.Visible = true, true
	return h
}

// expiryAfter returns the end of a lease or place that begins now and lasts d.
func (e *Entry) expiryAfter(now Instant, d time.Duration) Instant { return now.Add(d + e.Uncertainty) }

func (e *Entry) expire(now Instant) {
	// Search the slices before rebuilding them: usually nothing has expired, and then
	// nothing is written.
	if slices.ContainsFunc(e.Holders, func(h Holder) bool { return h.Expires <= now }) {
		for _, h := range e.Holders {
			if h.Expires <= now && h.LockDelay > 0 { // counted from the expiry, not from the step that finds it
				e.Closed = max(e.Closed, h.Expires.Add(h.LockDelay))
			}
			if h.Expires <= now {
				e.touchValue(h.Expires)
			}
		}
		e.Holders = slices.DeleteFunc(e.Holders, func(h Holder) bool { return h.Expires <= now })
		e.Changed, e.Visible = true, true
	}
	if slices.ContainsFunc(e.Queue, func(w Waiter) bool { return w.Expires <= now }) {
		e.Queue = slices.DeleteFunc(e.Queue, func(w Waiter) bool { return w.Expires <= now })
		e.Changed, e.Visible, e.headMustAsk = true, true, true
	}
	if slices.ContainsFunc(e.Broken, func(b Broken) bool { return b.Until <= now }) {
		e.Broken = slices.DeleteFunc(e.Broken, func(b Broken) bool { return b.Until <= now })
		e.Changed = true
	}
	if e.Closed != 0 && e.Closed <= now {
		e.Closed, e.Changed = 0, true
	}
}
