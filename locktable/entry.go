package locktable

import (
	"bytes"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// An Instant is a moment on the backend's clock, in microseconds since 1970.
type Instant int64

// At is the instant of t.
func At(t time.Time) Instant { return Instant(t.UnixMicro()) }

// Add is the instant d later. A part of a microsecond counts as a whole one, so that
// nothing ends early.
func (i Instant) Add(d time.Duration) Instant {
	return i + Instant((d+time.Microsecond-1)/time.Microsecond)
}

// Until is the time from i to j, negative if j is earlier.
func (i Instant) Until(j Instant) time.Duration { return time.Duration(j-i) * time.Microsecond }

// Time is the instant for people.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// An Entry is all that a backend knows of one name, and the methods below are the whole
// lock algorithm: each takes the time and changes the entry, with no clock, no I/O and no
// lock of its own. A table runs one method in one atomic step, stores the entry, and then
// sends the signals that are left in it.
//
// Read them in this order: settle, which every method does first; Acquire, with queue.go
// and refuse.go; Renew; Release; Break; Raise; Mark, in marks.go, which is for those who
// watch.
//
// What holds before and after each method (and what the property tests check):
//
//   - fences of holders are distinct and at most Fence, and Fence never falls
//   - a token stands at most once among the holders and the queue
//   - the weights of the holders, up to and with each of them, are at most that holder's
//     limit
//   - the value changes only by a grant, or by the token of a holder
//   - waiters stand in the order in which they came
//   - after settle no holder and no waiter is expired, and the head of the queue does not
//     fit
type Entry struct {
	Fence   uint64   // the last one ever granted, the last of a range included
	Closed  Instant  // nothing is granted before this: somebody was broken, or expired with a lock-delay
	Holders []Holder // in the order of their grants
	Queue   []Waiter // in the order in which they will be served: all, or the first of them
	Rest    Rest     // the waiters behind them, if they are stored apart from the entry, see Apart
	Broken  []Broken // leases that were taken from their holders, until they would have ended anyway
	Value   Value    // what the name keeps
	Marks   []Mark   // who watches

	// Blur is how much later than the time that a method is given it may take effect, by
	// a table that cannot say exactly: see [Store]. What begins then lasts so much
	// longer. It is not stored.
	Blur time.Duration

	// Day is the time of day, for a table whose clock may be behind it: fences are no
	// less than that either, so that they rise across the loss of what they are counted
	// in. It is not stored; 0 leaves them to the table's clock.
	Day Instant

	// What the last method did, for the table that stores the entry. None of it is
	// stored.
	Changed bool     // the entry is not as it was
	News    bool     // it is not as it was for people, either: more than a renewal, or a place that was kept
	Short   bool     // the method had to see more of the queue: what it did does not count, and it is run again
	Signals []Signal // to send once it is stored

	// The head of the queue may not know when the name opens by itself: it is another one
	// than before, or that is sooner than it was told.
	sooner bool
}

// Carried is what a claim takes with it, as a whole, to its place in the queue, and from
// there to its lease. A new field is written and read in codec.go, and shown in public.go
// if people see it.
type Carried struct {
	Token     driver.Token // zero once its lease is released: nobody can name it any more
	Inbox     string       // where its signals go
	Owner     driver.Owner
	Fences    int
	Weight    int
	Limit     int
	LockDelay time.Duration
}

func carried(c *driver.Claim, inbox string) Carried {
	return Carried{
		Token: c.Token, Inbox: inbox, Owner: c.Owner, Fences: c.Fences, Weight: c.Weight, Limit: c.Limit, LockDelay: c.LockDelay,
	}
}

// A Holder is a lease.
type Holder struct {
	Carried
	Fence   uint64  // the first of its range
	Since   Instant // when it was granted at the latest, see Entry.Blur
	Expires Instant // it is over when now == Expires
	Wrote   bool    // a value
}

// A Waiter is a place in the queue: a claim that is not granted yet.
type Waiter struct {
	Carried
	Since   Instant // when it came, its ticket heeded: the queue is in this order
	Expires Instant // of the place, unless the waiter asks again before
	Value   []byte  // what the name keeps from the grant on; nil leaves what it has
	Above   []byte  // it is granted above the value of the name only; nil is in any case
}

// A Value is what a name keeps. Its bytes are never changed, only replaced.
type Value struct {
	Bytes []byte  // nil is none
	Fence uint64  // of the lease that wrote it
	At    Instant // when it was written, or the last lease since then ended
}

// Broken remembers that a lease was taken from its holder, so that its next renewal can
// say by whom.
type Broken struct {
	Token driver.Token
	By    driver.Owner
	Until Instant // when the lease would have expired: its holder does not ask after that
}

// A Signal is for the client that listens at Inbox.
type Signal struct {
	Inbox string
	driver.Signal
}

// settle removes what has expired, then grants to the head of the queue while it fits.
// Every method begins with it, so the next caller does the work, and no janitor is
// needed.
func (e *Entry) settle(now Instant) {
	e.Changed, e.News, e.Short, e.Signals = false, false, false, nil // a new list, for the old one may be on its way
	e.unmark(now)
	e.expire(now)
	e.promote(now)
}

func (e *Entry) expire(now Instant) {
	// The slices are searched before they are rebuilt: mostly nothing has expired, and
	// then nothing is written.
	if slices.ContainsFunc(e.Holders, func(h Holder) bool { return h.Expires <= now }) {
		for _, h := range e.Holders {
			if h.Expires <= now && h.LockDelay > 0 { // counted from the expiry, whenever it is found
				e.Closed = max(e.Closed, h.Expires.Add(h.LockDelay))
			}
			if h.Expires <= now {
				e.used(h.Expires)
			}
		}
		e.Holders = slices.DeleteFunc(e.Holders, func(h Holder) bool { return h.Expires <= now })
		e.Changed, e.News = true, true
	}
	if slices.ContainsFunc(e.Queue, func(w Waiter) bool { return w.Expires <= now }) {
		e.Queue = slices.DeleteFunc(e.Queue, func(w Waiter) bool { return w.Expires <= now })
		e.Changed, e.News, e.sooner = true, true, true
	}
	if slices.ContainsFunc(e.Broken, func(b Broken) bool { return b.Until <= now }) {
		e.Broken = slices.DeleteFunc(e.Broken, func(b Broken) bool { return b.Until <= now })
		e.Changed = true
	}
	if e.Closed != 0 && e.Closed <= now {
		e.Closed, e.Changed = 0, true
	}
}

// promote grants to the head of the queue, and to the next, until one does not fit.
// Nobody passes that one, so the queue is fair.
//
// The grant lasts as long as the place would have, because the waiter does not know of it
// yet: if it is dead, it costs the others its QueueTTL and no more. If it lives, it may
// trust the grant for its QueueTTL from the sending of its last attempt: that attempt was
// handled later than it was sent, and this grant is later still.
func (e *Entry) promote(now Instant) {
	for len(e.Queue) > 0 && e.fits(now, e.Queue[0].Weight, e.Queue[0].Limit) {
		w := e.Queue[0]
		e.Queue, e.sooner = slices.Delete(e.Queue, 0, 1), true
		if !e.below(w.Above) { // it was when the waiter came
			e.Changed, e.News = true, true
			e.signal(w.Inbox, driver.Signal{Kind: driver.SignalLook, Token: w.Token})
			continue
		}
		h := e.grant(now, Holder{Carried: w.Carried, Expires: w.Expires}, 0, w.Value)
		e.signal(w.Inbox, driver.Signal{Kind: driver.SignalGranted, Token: w.Token, Fence: h.Fence, Fences: h.Fences})
	}
	if len(e.Queue) == 0 && e.Rest.Len > 0 && e.fits(now, 1, driver.Unlimited) {
		e.Short = true // there is room for the least of claims, and the next in the queue is not seen
	}
}

// fits reports whether a claim could be granted if nobody were ahead of it. A name with
// as many holders as can be stored has no room.
func (e *Entry) fits(now Instant, weight, limit int) bool {
	if now < e.Closed || len(e.Holders) >= maxPeople {
		return false
	}
	held := int64(0) // the sum of weights of Exclusive each does not fit an int everywhere
	for _, h := range e.Holders {
		held += int64(h.Weight)
	}
	return held+int64(weight) <= int64(limit)
}

// grant adds a holder, with the next fences. The time in microseconds keeps them rising
// when the entry was lost or forgotten since the last grant; the last fence, when the
// clock ran back. A fence that is wished for is heeded as far as it stays near the time.
func (e *Entry) grant(now Instant, h Holder, wish uint64, value []byte) Holder {
	if h.Weight != driver.Exclusive {
		h.Fences = 1 // holders side by side would get runs that overlap in time; only an exclusive one is alone
	}
	h.Fences = max(h.Fences, 1)
	h.Since = now.Add(e.Blur)
	h.Fence = e.Fence + 1
	if day := max(now, e.Day); day > 0 {
		h.Fence = max(h.Fence, uint64(day), min(wish, uint64(day.Add(driver.MaxLead))))
	}
	e.Fence = h.Fence + uint64(h.Fences) - 1
	e.write(now, &h, value)
	e.Holders = append(e.Holders, h)
	e.Changed, e.News = true, true
	return h
}

// write makes the name keep a value, if there is one, under a lease.
func (e *Entry) write(now Instant, by *Holder, value []byte) {
	if value != nil {
		e.Value, e.Changed, e.News = Value{Bytes: value, Fence: by.Fence, At: now}, true, true
		by.Wrote = true
	}
}

// used notes that a lease ended then, for the value is kept for a while from there on.
func (e *Entry) used(ended Instant) {
	if e.Value.Bytes != nil {
		e.Value.At = max(e.Value.At, ended)
	}
}

// below reports whether the name keeps nothing, or less than v; nil is above all.
func (e *Entry) below(v []byte) bool {
	return v == nil || e.Value.Bytes == nil || bytes.Compare(e.Value.Bytes, v) < 0
}

// Acquire grants the claim. Or its error is a [*driver.HeldError] that says what
// is in its way, or a [*driver.ValueError].
func (e *Entry) Acquire(now Instant, c *driver.Claim, inbox string) (driver.Grant, error) {
	e.settle(now)
	defer e.tell()

	// Asked again: by a caller that lost the reply, or by a waiter that settle, or
	// somebody before, promoted.
	if h := e.holder(c.Token); h != nil {
		e.extend(h, e.until(now, c.TTL))
		return driver.Grant{Fence: h.Fence, Fences: h.Fences, TTL: c.TTL}, nil
	}

	if err := e.notAbove(now, c); err != nil {
		return driver.Grant{}, err
	}

	if c.Force {
		e.leave(c.Token)
		for len(e.Holders) > 0 {
			e.take(now, 0, c.Owner)
		}
		e.Closed = 0 // from here on it would be untrue to tell anybody that nobody is granted the name
		grant := e.admit(now, c, inbox)
		e.promote(now) // beside a forced claim that is not exclusive, the head of the queue may fit
		return grant, nil
	}

	w, position := e.place(c.Token)
	if w == nil {
		// Nobody may be ahead. A place that is kept cannot be at the head and fit: settle
		// would have seen it.
		came, first := e.arrival(now, c)
		if first == 1 && e.fits(now, c.Weight, c.Limit) {
			return e.admit(now, c, inbox), nil
		}
		if c.Queue && e.waiting() < maxPeople {
			w, position = e.join(first, Waiter{Carried: carried(c, inbox), Since: came}), first
			e.News = true
		}
	}
	if c.Queue && w != nil {
		w.Fences, w.Expires = max(c.Fences, 1), max(w.Expires, e.until(now, c.QueueTTL))
		w.Value, w.Above = c.Value, c.Above
		e.Changed = true
	}
	return driver.Grant{}, e.held(now, c, position)
}

func (e *Entry) admit(now Instant, c *driver.Claim, inbox string) driver.Grant {
	h := e.grant(now, Holder{Carried: carried(c, inbox), Expires: e.until(now, c.TTL)}, c.MinFence, c.Value)
	return driver.Grant{Fence: h.Fence, Fences: h.Fences, TTL: c.TTL}
}

// Renew makes the lease last its TTL from now, and writes its value. It never creates
// one, and never shortens one.
func (e *Entry) Renew(now Instant, l *driver.LeaseRef) error {
	e.settle(now)
	defer e.tell()
	if h := e.holder(l.Token); h != nil {
		e.extend(h, e.until(now, l.TTL))
		e.write(now, h, l.Value)
		return nil
	}
	return e.gone(now, l.Token)
}

// until is when what begins now, and lasts so long, is over.
func (e *Entry) until(now Instant, d time.Duration) Instant { return now.Add(d + e.Blur) }

func (e *Entry) extend(h *Holder, until Instant) {
	if until > h.Expires {
		h.Expires, e.Changed = until, true
	}
}

// gone says why a token holds nothing, as far as it is known.
func (e *Entry) gone(now Instant, token driver.Token) error {
	for _, b := range slices.Backward(e.Broken) { // the last one counts, should a token have been broken twice
		if b.Token == token && !token.IsZero() {
			return &driver.BrokenError{By: shown(b.By), ClosedFor: max(0, now.Until(e.Closed)-e.Blur)}
		}
	}
	return driver.ErrNotHeld
}

// Release ends the token's lease and writes its value, or takes it out of the queue, and
// passes the name on. With MinHold, the lease stays until that long after its grant, but
// the token no longer names it.
func (e *Entry) Release(now Instant, l *driver.LeaseRef) error {
	token, minHold := l.Token, l.MinHold
	e.settle(now)
	defer e.tell()
	if h := e.holder(token); h != nil {
		e.write(now, h, l.Value) // before the name is passed on: somebody may wait to be above it
		// The grant came no later than its window ended, and no later than this one ends:
		// that may be earlier, also because the clock ran back.
		if until := min(h.Since, now.Add(e.Blur)).Add(minHold); minHold > 0 && until > now {
			// It ends as a release does: with no lock-delay, and for nobody to renew.
			h.Token, h.LockDelay, h.Expires = driver.Token{}, 0, until
			e.sooner = true
		} else {
			e.Holders = slices.DeleteFunc(e.Holders, func(h Holder) bool { return h.Token == token })
			e.used(now)
		}
	} else if !e.leave(token) {
		return e.gone(now, token)
	}
	e.Changed, e.News = true, true
	e.promote(now)
	return nil
}

// Break takes the lease with this fence from its holder, and keeps the name closed for
// delay.
func (e *Entry) Break(now Instant, fence uint64, delay time.Duration, by driver.Owner) error {
	e.settle(now)
	defer e.tell()
	i := slices.IndexFunc(e.Holders, func(h Holder) bool { return h.Fence <= fence && fence-h.Fence < uint64(h.Fences) })
	if i < 0 {
		return driver.ErrNotHeld
	}
	e.take(now, i, by)
	if delay > 0 {
		e.Closed = max(e.Closed, e.until(now, delay))
		e.sooner = true
	}
	e.promote(now)
	return nil
}

// maxBroken bounds how many broken leases are remembered, for a client in a loop could
// break for ever. The holder of one that is forgotten hears ErrNotHeld, but not who took
// it.
const maxBroken = 256

// take removes a holder against its will, and leaves word for it.
func (e *Entry) take(now Instant, i int, by driver.Owner) {
	h := e.Holders[i]
	e.used(now)
	e.Holders = slices.Delete(e.Holders, i, i+1)
	if !h.Token.IsZero() {
		if len(e.Broken) >= maxBroken {
			e.Broken = slices.Delete(e.Broken, 0, 1)
		}
		e.Broken = append(e.Broken, Broken{Token: h.Token, By: by, Until: h.Expires})
		e.signal(h.Inbox, driver.Signal{Kind: driver.SignalLost, Token: h.Token})
	}
	e.Changed, e.News = true, true
}

// Raise makes the fence of the token's lease at least fence, and returns what it is then.
// The lease whose fence rises becomes the last one granted: holders stand in the order of
// their fences, no number is the fence of two leases, and the weights up to and with each
// holder are within its limit. If it could not have been granted after the leases that
// were granted since, nothing is changed.
func (e *Entry) Raise(now Instant, c *driver.LeaseRef, fence uint64) (uint64, error) {
	e.settle(now)
	defer e.tell()
	h := e.holder(c.Token)
	switch {
	case h == nil:
		return 0, e.gone(now, c.Token)
	case h.Fence >= fence:
		e.writeFirst(now, h, c.Value)
		return h.Fence, nil
	}
	raised := *h
	if last := h.Fence + uint64(h.Fences) - 1; e.Fence > last {
		fence = max(fence, e.Fence+1) // others were granted since
	}
	held := int64(0)
	for _, o := range e.Holders {
		held += int64(o.Weight)
	}
	if held > int64(raised.Limit) {
		return 0, e.held(now, &driver.Claim{Name: c.Name, Token: c.Token, Weight: raised.Weight, Limit: raised.Limit}, 0)
	}
	if e.Value.Fence == raised.Fence {
		e.Value.Fence = fence // it was written under this lease, and still is
	}
	raised.Fence = fence
	e.writeFirst(now, &raised, c.Value)
	e.Holders = append(slices.DeleteFunc(e.Holders, func(h Holder) bool { return h.Token == c.Token }), raised)
	e.Fence, e.Changed, e.News = fence+uint64(raised.Fences)-1, true, true
	return fence, nil
}

// writeFirst writes a value unless this lease has written one before.
func (e *Entry) writeFirst(now Instant, by *Holder, value []byte) {
	if !by.Wrote {
		e.write(now, by, value)
	}
}

// holder finds a lease by its token. The zero token finds none: leases that are kept for
// their minimum hold have it.
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
