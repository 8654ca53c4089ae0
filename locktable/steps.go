package locktable

import (
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Acquire grants the claim. Otherwise its error is a [*driver.HeldError] or a
// [*driver.ValueNotBelowError].
func (e *Entry) Acquire(now Instant, c *driver.Claim, inbox string) (driver.Grant, error) {
	e.settle(now)
	defer e.signalChange()

	// The claim is a repeat: its caller lost the reply, or settle or an earlier step
	// granted it from the queue.
	if h := e.holder(c.Token); h != nil {
		e.extend(now, h, c.TTL)
		return driver.Grant{Fence: h.Fence, Fences: h.Fences, TTL: c.TTL}, nil
	}

	if err := e.checkValueBelow(now, c); err != nil {
		return driver.Grant{}, err
	}

	if c.Force {
		e.removePlace(c.Token)
		for len(e.Holders) > 0 {
			e.breakLease(now, 0, c.Owner)
		}
		e.Closed = 0 // otherwise noLeaseErr would report that the name stays closed
		grant := e.admit(now, c, inbox)
		e.promote(now) // the head of the queue may fit if the forced claim is not exclusive
		return grant, nil
	}

	w, position := e.place(c.Token)
	if w == nil {
		// The claim is granted only if no waiter is ahead. A claim that has a place
		// cannot be granted here: settle would have done so.
		arrived, joinAt := e.arrival(now, c)
		if joinAt == 1 && e.fits(now, c.Weight, c.Limit) {
			return e.admit(now, c, inbox), nil
		}
		if c.Queue && e.waiting() < maxClaims {
			w, position = e.join(joinAt, Waiter{ClaimInfo: claimInfo(c, inbox), Since: arrived}), joinAt
			e.Visible = true
		}
	}
	if c.Queue && w != nil {
		w.Fences, w.Expires = max(c.Fences, 1), max(w.Expires, e.expiryAfter(now, c.QueueTTL))
		w.Value, w.ValueBelow, w.TTL = c.Value, c.ValueBelow, c.TTL
		e.Changed = true
	}
	return driver.Grant{}, e.heldErr(now, c, position)
}

func (e *Entry) admit(now Instant, c *driver.Claim, inbox string) driver.Grant {
	h := e.grant(now, Holder{ClaimInfo: claimInfo(c, inbox), Expires: e.expiryAfter(now, c.TTL)}, c.MinFence, c.Value)
	return driver.Grant{Fence: h.Fence, Fences: h.Fences, TTL: c.TTL}
}

// Renew makes the lease last its TTL from now, and writes its value. It never creates or
// shortens a lease.
func (e *Entry) Renew(now Instant, l *driver.LeaseRef) error {
	e.settle(now)
	defer e.signalChange()
	if h := e.holder(l.Token); h != nil {
		e.extend(now, h, l.TTL)
		e.write(now, h, l.Value)
		return nil
	}
	return e.noLeaseErr(now, l.Token)
}

// extend makes a lease last this TTL from now, and never shortens it.
func (e *Entry) extend(now Instant, h *Holder, ttl time.Duration) {
	if until := e.expiryAfter(now, ttl); until > h.Expires {
		h.Expires, e.Changed = until, true
	}
	if ttl != h.TTL {
		h.TTL, e.Changed = ttl, true
	}
}

// Release ends the token's lease and writes its value, or takes the token out of the
// queue. Then it grants to the next waiters. With MinHold, the lease stays until MinHold
// after its grant, but the token no longer names it.
func (e *Entry) Release(now Instant, l *driver.LeaseRef) error {
	token, minHold := l.Token, l.MinHold
	e.settle(now)
	defer e.signalChange()
	if h := e.holder(token); h != nil {
		e.write(now, h, l.Value) // before the next grant, because a waiter's ValueBelow is compared with the new value
		// The grant was made before h.Since, and also before the end of this step's
		// window, which is earlier if the clock ran back.
		if until := min(h.Since, now.Add(e.Uncertainty)).Add(minHold); minHold > 0 && until > now {
			// The lease ends like a released one: no lock-delay follows, and no client
			// can renew it.
			h.Token, h.LockDelay, h.Expires = driver.Token{}, 0, until
			e.headMustAsk = true
		} else {
			e.Holders = slices.DeleteFunc(e.Holders, func(h Holder) bool { return h.Token == token })
			e.touchValue(now)
		}
	} else if !e.removePlace(token) {
		return e.noLeaseErr(now, token)
	}
	e.Changed, e.Visible = true, true
	e.promote(now)
	return nil
}

// Break takes the lease with this fence from its holder, and keeps the name closed for
// delay.
func (e *Entry) Break(now Instant, fence uint64, delay time.Duration, by driver.Owner) error {
	e.settle(now)
	defer e.signalChange()
	i := slices.IndexFunc(e.Holders, func(h Holder) bool { return h.Fence <= fence && fence-h.Fence < uint64(h.Fences) })
	if i < 0 {
		return driver.ErrNoSuchLease
	}
	e.breakLease(now, i, by)
	if delay > 0 {
		e.Closed = max(e.Closed, e.expiryAfter(now, delay))
		e.headMustAsk = true
	}
	e.promote(now)
	return nil
}

// maxBroken is the number of broken leases that an entry remembers, because a client
// could break leases in a loop. The holder of a forgotten lease gets ErrNoSuchLease,
// without the name of the breaker.
const maxBroken = 256

// breakLease breaks a holder's lease, and remembers the break for the holder's next
// renewal.
func (e *Entry) breakLease(now Instant, i int, by driver.Owner) {
	h := e.Holders[i]
	e.touchValue(now)
	e.Holders = slices.Delete(e.Holders, i, i+1)
	if !h.Token.IsZero() {
		if len(e.Broken) >= maxBroken {
			e.Broken = slices.Delete(e.Broken, 0, 1)
		}
		e.Broken = append(e.Broken, Broken{Token: h.Token, By: by, Until: h.Expires})
		e.signal(h.Inbox, driver.Signal{Kind: driver.SignalLost, Token: h.Token})
	}
	e.Changed, e.Visible = true, true
}

// Raise raises the fence of the token's lease to at least fence, and returns the new
// fence. A lease whose fence rises moves behind all other holders, as if it were the last
// one granted. So the rules of Entry still hold. If the limit of the lease does not allow
// that, nothing changes.
func (e *Entry) Raise(now Instant, l *driver.LeaseRef, fence uint64) (uint64, error) {
	e.settle(now)
	defer e.signalChange()
	h := e.holder(l.Token)
	switch {
	case h == nil:
		return 0, e.noLeaseErr(now, l.Token)
	case h.Fence >= fence:
		e.writeFirst(now, h, l.Value)
		return h.Fence, nil
	}
	raised := *h
	if last := h.Fence + uint64(h.Fences) - 1; e.Fence > last {
		fence = max(fence, e.Fence+1) // other leases were granted since
	}
	held := int64(0)
	for _, o := range e.Holders {
		held += int64(o.Weight)
	}
	if held > int64(raised.Limit) {
		return 0, e.heldErr(now, &driver.Claim{Name: l.Name, Token: l.Token, Weight: raised.Weight, Limit: raised.Limit}, 0)
	}
	if e.Value.Fence == raised.Fence {
		e.Value.Fence = fence // this lease wrote the value, so the value's fence rises too
	}
	raised.Fence = fence
	e.writeFirst(now, &raised, l.Value)
	e.Holders = append(slices.DeleteFunc(e.Holders, func(h Holder) bool { return h.Token == l.Token }), raised)
	e.Fence, e.Changed, e.Visible = fence+uint64(raised.Fences)-1, true, true
	return fence, nil
}

// noLeaseErr returns the error for a token without a lease: the break of its lease if the
// entry remembers that, or ErrNoSuchLease.
func (e *Entry) noLeaseErr(now Instant, token driver.Token) error {
	for _, b := range slices.Backward(e.Broken) { // backward, because the last break of a token counts
		if b.Token == token && !token.IsZero() {
			return &driver.BrokenError{By: b.By.Clone(), ClosedFor: max(0, now.Until(e.Closed)-e.Uncertainty)}
		}
	}
	return driver.ErrNoSuchLease
}
