package locktable

import (
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
// and last; the steps of steps.go: Acquire, with queue.go and refuse.go, Renew, Release,
// Break and Raise; grant.go, which makes the fences; value.go; and, in marks.go, Mark,
// for clients that watch.
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
	Value    Value    // the value that the name keeps
	Marks    []Mark   // the clients that watch the name

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
	Inbox     string       // the address of its signals
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

// Broken records a lease that was broken, so that the answer to its holder's next renewal
// names the breaker.
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
// while it fits. Every method calls it first, so no background job is needed.
func (e *Entry) settle(now Instant) {
	e.Changed, e.Visible, e.NeedsMore, e.Signals = false, false, false, nil // not [:0]: the old list may be in use
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
