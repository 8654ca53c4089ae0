package locktable

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Refuses returns the error with which Acquire would refuse a claim that neither queues
// nor forces, or nil if Acquire would grant it. Refuses does not grant the claim. But
// like Acquire, it removes expired leases and grants to waiters.
func (e *Entry) Refuses(now Instant, c *driver.Claim) error {
	e.settle(now)
	defer e.signalChange()
	if e.holder(c.Token) != nil {
		return nil
	}
	if err := e.checkValueBelow(now, c); err != nil {
		return err
	}
	w, position := e.place(c.Token)
	if w == nil && e.waiting() == 0 && e.fits(now, c.Weight, c.Limit) {
		return nil
	}
	return e.heldErr(now, c, position)
}

// heldErr returns the error of a refused claim: the holders, and when they expire or the
// name opens.
func (e *Entry) heldErr(now Instant, c *driver.Claim, position int) *driver.HeldError {
	e.headMustAsk = e.headMustAsk && position != 1 // at position 1, this is the answer to the head
	var headExpiry Instant
	switch {
	case len(e.Queue) > 0:
		headExpiry = e.Queue[0].Expires
	case e.waiting() > 0 && e.fits(now, c.Weight, c.Limit):
		e.NeedsMore = true // the answer depends on the head, which is not loaded
	}
	first, others := e.otherHolders(c.Token)
	refused := &driver.HeldError{
		Name: c.Name, Position: position, Fence: e.Fence, Holders: others, ClosedFor: max(0, now.Until(e.Closed)),
	}
	if others > 0 {
		refused.Holder = first.public(now, e.WallClock)
	}
	refused.RetryAfter = e.retryAfter(now, c, first, headExpiry)
	return refused
}

// otherHolders counts the holders except the claim's own lease. first is the holder that
// expires first. If several expire at that instant, it is the one with the longest
// lock-delay.
func (e *Entry) otherHolders(own driver.Token) (first *Holder, n int) {
	for i := range e.Holders {
		h := &e.Holders[i]
		if h.Token == own && !own.IsZero() {
			continue
		}
		if n++; first == nil || h.Expires < first.Expires || h.Expires == first.Expires && h.LockDelay > first.LockDelay {
			first = h
		}
	}
	return first, n
}

// retryAfter returns the time until c may succeed without a request of another client. On
// a closed name, it is the time until the name opens. On an open name, it is the time
// until the first holder's lease and lock-delay end, or until the place of the queue's
// head expires, if that is sooner and c would fit. headExpiry is 0 if there is no queue.
func (e *Entry) retryAfter(now Instant, c *driver.Claim, first *Holder, headExpiry Instant) (d time.Duration) {
	if e.Closed > now {
		return now.Until(e.Closed)
	}
	if first != nil {
		d = now.Until(first.Expires.Add(first.LockDelay))
	}
	if headExpiry > 0 && e.fits(now, c.Weight, c.Limit) {
		d = min(d, now.Until(headExpiry))
	}
	return d
}
