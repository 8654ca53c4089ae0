package locktable

import (
	"bytes"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// An Instant is a moment on the backend's clock, in microseconds since 1970.
type Instant int64

// At returns the instant of t.
func At(t time.Time) Instant { return Instant(t.UnixMicro()) }

// Add returns the instant d later. It rounds up to whole microseconds, so that no lease
// ends early.
func (i Instant) Add(d time.Duration) Instant {
	return i + Instant((d+time.Microsecond-1)/time.Microsecond)
}

// Until returns the time from i to j, negative if j is earlier.
func (i Instant) Until(j Instant) time.Duration { return time.Duration(j-i) * time.Microsecond }

// Time returns the instant as a time in UTC.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// An Entry is the state of one name. Its methods are the whole lock algorithm: each takes
// the time and changes the entry, with no clock, no I/O and no lock of its own. A table
// runs one method in one atomic step, stores the entry, and then sends the entry's
// signals.
//
// Read the methods in this order: settle and signalChange, which every method calls first
// and last; Acquire, with queue.go and refuse.go; Renew; Release; Break; Raise; and, in
// marks.go, Mark, for clients that watch.
//
// These rules hold before and after each method, and the property tests check them:
//
//   - fences of holders are distinct and at most Fence, and Fence never falls
//   - a token occurs at most once among the holders and the queue
//   - for each holder, its weight and the weights of the holders before it add up to no
//     more than its limit
//   - only a grant, or a request with the token of a holder, changes the value
//   - waiters are in the order of their arrival
//   - after settle no holder and no waiter is expired, and the head of the queue does not
//     fit
type Entry struct {
	Fence    uint64   // the last fence ever granted; the last of a range
	Closed   Instant  // nothing is granted before this: a lease was broken, or expired with a lock-delay
	Holders  []Holder // in the order of their grants
	Queue    []Waiter // in the order in which they will be served: all of them, or the first ones
	Overflow Overflow // the waiters behind Queue, if they are stored apart from the entry, see WithRows
	Broken   []Broken // leases that were broken, until they would have expired
	Value    Value    // what the name keeps
	Marks    []Mark   // the clients that watch

	// Uncertainty is the longest time by which a step may take effect later than the time
	// that it was given: some tables cannot know the time exactly, see package swap. A
	// lease or place that begins in the step lasts longer by it. It is not stored.
	Uncertainty time.Duration

	// WallClock is the time of day, for a table whose own clock may be behind it. Fences
	// are at least WallClock, so that they rise even after the table lost its own clock.
	// WallClock is not stored; 0 means that fences follow the table's clock only.
	WallClock Instant

	// The fields below are the result of the last method, for the table. They are not
	// stored.
	Changed   bool     // the entry differs from before
	Visible   bool     // the change is visible in Inspect; the renewal of a lease or a place is not
	NeedsMore bool     // the method needs more of the queue: WithRows drops the result and runs it again
	Signals   []Signal // to send once the entry is stored

	// headMustAsk means that the head of the queue may have to ask again, to learn when
	// the name opens: the head has changed, or the name opens sooner than the head's last
	// answer said.
	headMustAsk bool
}

// ClaimInfo has the fields of a claim that its place in the queue and its lease keep. To
// add a field, write and read it in codec.go, and add it to Public in public.go if
// Inspect shows it.
type ClaimInfo struct {
	Token     driver.Token // zero once its lease is released, so that no client can renew it
	Inbox     string       // where its signals go
	Owner     driver.Owner
	Fences    int
	Weight    int
	Limit     int
	LockDelay time.Duration
	TTL       time.Duration // the TTL that the last Acquire or Renew of the token asked for
}

func claimInfo(c *driver.Claim, inbox string) ClaimInfo {
	return ClaimInfo{
		Token: c.Token, Inbox: inbox, Owner: c.Owner, Fences: c.Fences, Weight: c.Weight, Limit: c.Limit, LockDelay: c.LockDelay,
		TTL: c.TTL,
	}
}

// A Holder is a lease.
type Holder struct {
	ClaimInfo
	Fence   uint64  // the first of its range
	Since   Instant // the latest instant at which it was granted, see Entry.Uncertainty
	Expires Instant // the lease is over at this instant
	Wrote   bool    // the lease has written a value
}

// A Waiter is a place in the queue: a claim that is not granted yet.
type Waiter struct {
	ClaimInfo
	Since      Instant // when the claim arrived, or its ticket; the queue is in this order
	Expires    Instant // when the place expires, unless the waiter repeats its claim
	Value      []byte  // the value of the name from the grant on; nil leaves the value as it is
	ValueBelow []byte  // the claim is granted only if the name's value is smaller; nil means any value
}

// A Value is the value of a name. Its bytes are never changed, only replaced.
type Value struct {
	Bytes []byte  // nil means no value
	Fence uint64  // the fence of the lease that wrote it
	At    Instant // when it was written, or when the last lease since then ended
}

// Broken remembers a lease that was broken, so that the answer to its holder's next
// renewal names the breaker.
type Broken struct {
	Token driver.Token
	By    driver.Owner
	Until Instant // when the lease would have expired: its holder does not renew after that
}

// A Signal is for the client that listens at Inbox.
type Signal struct {
	Inbox string
	driver.Signal
}

// settle removes expired leases and places, and then grants to the head of the queue
// while it fits. Every method calls it first, so no background job has to.
func (e *Entry) settle(now Instant) {
	e.Changed, e.Visible, e.NeedsMore, e.Signals = false, false, false, nil // not Signals[:0]: the old list may be used
	// Dropping expired marks does not set Changed: the next change stores it.
	e.Marks = slices.DeleteFunc(e.Marks, func(m Mark) bool { return m.Until <= now })
	e.expire(now)
	e.promote(now)
}

// signalChange signals the head of the queue, if it has to ask again, and all marks, if
// the change is visible. Every method calls it last. The answer to the head says when the
// name opens by itself, because no client will signal that.
func (e *Entry) signalChange() {
	switch {
	case !e.headMustAsk, e.OpensAt() == 0:
	case len(e.Queue) > 0:
		e.signal(e.Queue[0].Inbox, driver.Signal{Kind: driver.SignalRetry, Token: e.Queue[0].Token})
	case e.Overflow.Len > 0:
		e.NeedsMore = true
	}
	e.headMustAsk = false
	if !e.Visible {
		return
	}
	for _, m := range e.Marks {
		e.signal(m.Inbox, driver.Signal{Kind: signalChanged, Token: m.Token})
	}
}

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

// promote grants the claim at the head of the queue, and then the next, until a claim
// does not fit. No claim passes a claim that waits, so the queue is fair.
//
// The waiter may be dead. So the grant lasts only as long as the place would have, and a
// dead waiter costs the others only its QueueTTL. A live waiter can rely on the grant for
// its QueueTTL, counted from the time at which it sent its last attempt: the backend
// handled that attempt, and then granted, after that time.
func (e *Entry) promote(now Instant) {
	for len(e.Queue) > 0 && e.fits(now, e.Queue[0].Weight, e.Queue[0].Limit) {
		w := e.Queue[0]
		e.Queue, e.headMustAsk = slices.Delete(e.Queue, 0, 1), true
		if !e.valueBelow(w.ValueBelow) { // the condition was true when the waiter came, and is not now
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
	if now < e.Closed || len(e.Holders) >= maxPeople {
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
// even if the entry was lost or forgotten. wish is the claim's MinFence; it counts up to
// MaxLead ahead of the time.
func (e *Entry) grant(now Instant, h Holder, wish uint64, value []byte) Holder {
	if h.Weight != driver.Exclusive {
		h.Fences = 1 // only exclusive holders get ranges, because ranges of several holders could overlap
	}
	h.Fences = max(h.Fences, 1)
	h.Since = now.Add(e.Uncertainty)
	h.Fence = e.Fence + 1
	if base := max(now, e.WallClock); base > 0 {
		h.Fence = max(h.Fence, uint64(base), min(wish, uint64(base.Add(driver.MaxLead))))
	}
	e.Fence = h.Fence + uint64(h.Fences) - 1
	e.write(now, &h, value)
	e.Holders = append(e.Holders, h)
	e.Changed, e.Visible = true, true
	return h
}

// write stores a value in the name. A nil value changes nothing.
func (e *Entry) write(now Instant, by *Holder, value []byte) {
	if value != nil {
		e.Value, e.Changed, e.Visible = Value{Bytes: value, Fence: by.Fence, At: now}, true, true
		by.Wrote = true
	}
}

// touchValue stores the end of a lease, because the retention of the value counts from
// it.
func (e *Entry) touchValue(ended Instant) {
	if e.Value.Bytes != nil {
		e.Value.At = max(e.Value.At, ended)
	}
}

// valueBelow reports whether the name has no value, or a value less than v. Every value
// is below a nil v.
func (e *Entry) valueBelow(v []byte) bool {
	return v == nil || e.Value.Bytes == nil || bytes.Compare(e.Value.Bytes, v) < 0
}

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

	if err := e.refuseValue(now, c); err != nil {
		return driver.Grant{}, err
	}

	if c.Force {
		e.leave(c.Token)
		for len(e.Holders) > 0 {
			e.breakLease(now, 0, c.Owner)
		}
		e.Closed = 0 // otherwise Entry.gone would report that the name stays closed
		grant := e.admit(now, c, inbox)
		e.promote(now) // the head of the queue may fit if the forced claim is not exclusive
		return grant, nil
	}

	w, position := e.place(c.Token)
	if w == nil {
		// The claim is granted only if no waiter is ahead. A claim that has a place
		// cannot be granted here: settle would have done so.
		came, first := e.arrival(now, c)
		if first == 1 && e.fits(now, c.Weight, c.Limit) {
			return e.admit(now, c, inbox), nil
		}
		if c.Queue && e.waiting() < maxPeople {
			w, position = e.join(first, Waiter{ClaimInfo: claimInfo(c, inbox), Since: came}), first
			e.Visible = true
		}
	}
	if c.Queue && w != nil {
		w.Fences, w.Expires = max(c.Fences, 1), max(w.Expires, e.until(now, c.QueueTTL))
		w.Value, w.ValueBelow, w.TTL = c.Value, c.ValueBelow, c.TTL
		e.Changed = true
	}
	return driver.Grant{}, e.heldErr(now, c, position)
}

func (e *Entry) admit(now Instant, c *driver.Claim, inbox string) driver.Grant {
	h := e.grant(now, Holder{ClaimInfo: claimInfo(c, inbox), Expires: e.until(now, c.TTL)}, c.MinFence, c.Value)
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

// until returns the end of a lease or place that begins now and lasts d.
func (e *Entry) until(now Instant, d time.Duration) Instant { return now.Add(d + e.Uncertainty) }

// extend makes a lease last this TTL from now, and never shortens it.
func (e *Entry) extend(now Instant, h *Holder, ttl time.Duration) {
	if until := e.until(now, ttl); until > h.Expires {
		h.Expires, e.Changed = until, true
	}
	if ttl != h.TTL {
		h.TTL, e.Changed = ttl, true
	}
}

// noLeaseErr returns the error for a token without a lease: the break of its lease if the
// entry remembers that, or ErrNoSuchLease.
func (e *Entry) noLeaseErr(now Instant, token driver.Token) error {
	for _, b := range slices.Backward(e.Broken) { // backward, because the last break of a token counts
		if b.Token == token && !token.IsZero() {
			return &driver.BrokenError{By: copyOwner(b.By), ClosedFor: max(0, now.Until(e.Closed)-e.Uncertainty)}
		}
	}
	return driver.ErrNoSuchLease
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
	} else if !e.leave(token) {
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
		e.Closed = max(e.Closed, e.until(now, delay))
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
func (e *Entry) Raise(now Instant, c *driver.LeaseRef, fence uint64) (uint64, error) {
	e.settle(now)
	defer e.signalChange()
	h := e.holder(c.Token)
	switch {
	case h == nil:
		return 0, e.noLeaseErr(now, c.Token)
	case h.Fence >= fence:
		e.writeFirst(now, h, c.Value)
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
		return 0, e.heldErr(now, &driver.Claim{Name: c.Name, Token: c.Token, Weight: raised.Weight, Limit: raised.Limit}, 0)
	}
	if e.Value.Fence == raised.Fence {
		e.Value.Fence = fence // this lease wrote the value, so the value's fence rises too
	}
	raised.Fence = fence
	e.writeFirst(now, &raised, c.Value)
	e.Holders = append(slices.DeleteFunc(e.Holders, func(h Holder) bool { return h.Token == c.Token }), raised)
	e.Fence, e.Changed, e.Visible = fence+uint64(raised.Fences)-1, true, true
	return fence, nil
}

// writeFirst writes a value unless this lease has written one before.
func (e *Entry) writeFirst(now Instant, by *Holder, value []byte) {
	if !by.Wrote {
		e.write(now, by, value)
	}
}

// holder finds a lease by its token. It finds no lease for the zero token, which all
// released leases with a minimum hold have.
func (e *Entry) holder(token driver.Token) *Holder {
	for i := range e.Holders {
		if e.Holders[i].Token == token && !token.IsZero() {
			return &e.Holders[i]
		}
	}
	return nil
}

func (e *Entry) signal(inbox string, s driver.Signal) {
	e.Signals = append(e.Signals, Signal{Inbox: inbox, Signal: s})
}
