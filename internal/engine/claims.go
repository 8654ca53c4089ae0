package engine

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Claims are the claims of a client that wait or hold, and the times until which they do.
// A backend passes them the answers to its own steps, the signals that come in, and the
// entries that it reads.
//
// A claim that another client has ended stays until it lapses. Until then a few looks
// find nothing.
type Claims struct {
	mu           sync.Mutex // protects all below
	waits, holds map[driver.Token]*Claim
	due          due
	swept        time.Time
	awake        bool          // a Poller knows that there is a claim to look for
	hurry        chan struct{} // has room for one; receives when a look is due sooner than a Poller knows
}

// A Claim is one of Claims.
type Claim struct {
	Token driver.Token
	Name  string
	Until time.Time // when the claim lapses, unless the client keeps it
	Fence uint64    // the last fence granted on its name, as far as the client knows
	Queue int       // how many wait for its name, as far as the client knows

	held  bool              // the client knows of its grant
	ahead int               // how many wait ahead of it
	noted time.Time         // when the client last got an answer or a signal about it
	moved time.Time         // when something last happened on its name
	opens locktable.Instant // when its name opens by itself, as the client knows
}

// NewClaims returns an empty list.
func NewClaims() *Claims {
	return &Claims{waits: map[driver.Token]*Claim{}, holds: map[driver.Token]*Claim{}, hurry: make(chan struct{}, 1)}
}

// Hurry receives when a look is due sooner than a Poller knows, for example for the first
// claim.
func (c *Claims) Hurry() <-chan struct{} { return c.hurry }

// Acquired notes the answer to a claim that was sent at `sent`. It reports whether the
// claim surely waits or holds: an error that is no answer leaves that unknown.
func (c *Claims) Acquired(claim *driver.Claim, sent time.Time, err error) bool {
	held, refused := errors.AsType[*driver.HeldError](err)
	switch {
	case err == nil:
		c.Hold(claim.Token, claim.Name, time.Now().Add(claim.TTL))
	case refused && held.Position > 0:
		c.wait(claim, held, sent)
	case refused, errors.Is(err, driver.ErrValueNotGreater):
		c.Drop(claim.Token) // it has no place
		return false
	default:
		return false
	}
	return true
}

func (c *Claims) wait(claim *driver.Claim, held *driver.HeldError, sent time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.sweepNowAndThen(now)
	delete(c.holds, claim.Token)
	x := c.waits[claim.Token]
	isNew := x == nil
	if isNew {
		x = &Claim{Token: claim.Token, Name: claim.Name, Fence: held.Fence, moved: now}
		c.waits[claim.Token] = x
	}
	sooner := isNew || held.Position-1 < x.ahead
	x.Until, x.noted, x.ahead, x.Queue = sent.Add(claim.QueueTTL), now, held.Position-1, max(x.Queue, held.Position)
	if sooner {
		c.due.sooner(x)
		c.wake()
	}
}

// Hold notes a lease that ends at `until`, unless it is renewed.
func (c *Claims) Hold(t driver.Token, name string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.sweepNowAndThen(now)
	delete(c.waits, t)
	c.holds[t] = &Claim{Token: t, Name: name, Until: until, held: true, noted: now}
	if !c.awake { // waking a Poller for each lease would cost more than the rest
		c.wake()
	}
}

// Renewed notes the answers to renewals that were sent at `sent`.
func (c *Claims) Renewed(leases []driver.LeaseRef, sent time.Time, answers []error) {
	for i, answer := range answers {
		switch {
		case answer == nil:
			c.Hold(leases[i].Token, leases[i].Name, sent.Add(leases[i].TTL))
		case errors.Is(answer, driver.ErrNoSuchLease):
			c.Drop(leases[i].Token)
		}
	}
}

// Drop notes that a token neither waits nor holds.
func (c *Claims) Drop(t driver.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waits, t)
	delete(c.holds, t)
}

// Heard notes a signal for this client. A lease that a waiter got from the queue lasts as
// long as its place would have lasted.
func (c *Claims) Heard(s driver.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.find(s.Token); x != nil && s.Kind == driver.SignalGranted {
		c.told(x, true)
		x.noted = time.Now()
	}
}

// Compare compares some claims with the entry of their name, which was requested at
// `asked`. It returns signals for the client about changes. It skips claims about which
// the client has learned something since the request.
func (c *Claims) Compare(some []Claim, e *locktable.Entry, asked time.Time) (news []driver.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range some {
		if x := c.find(one.Token); x != nil && !x.noted.After(asked) {
			if s, isNews := c.compare(x, e, asked); isNews {
				news = append(news, s)
			}
		}
	}
	return news
}

func (c *Claims) compare(x *Claim, e *locktable.Entry, asked time.Time) (s driver.Signal, news bool) {
	if x.Fence != e.Fence {
		x.Fence, x.moved = e.Fence, asked
		c.due.sooner(x)
	}
	x.Queue = len(e.Queue)
	place := slices.IndexFunc(e.Queue, func(w locktable.Waiter) bool { return w.Token == x.Token })
	grant := slices.IndexFunc(e.Holders, func(h locktable.Holder) bool { return h.Token == x.Token })
	switch s.Token = x.Token; {
	case x.held:
		s.Kind = driver.SignalLost
		return s, grant < 0
	case place >= 0:
		s.Kind = driver.SignalLook
		if place < x.ahead {
			c.due.sooner(x)
		}
		x.ahead = place
		if at := e.OpensAt(); place == 0 && at != 0 && at != x.opens {
			x.opens, news = at, true
		}
		return s, news
	case grant >= 0:
		s.Kind, s.Fence, s.Fences = driver.SignalGranted, e.Holders[grant].Fence, e.Holders[grant].Fences
	default:
		s.Kind = driver.SignalLook // it has lost its place, or waits apart from the entry
	}
	c.told(x, grant >= 0)
	return s, true
}

// told moves a claim from waits to holds, because its client gets a signal: the claim was
// granted, or has to ask. A Poller then looks for its loss only.
func (c *Claims) told(x *Claim, granted bool) {
	delete(c.waits, x.Token)
	c.holds[x.Token], x.held = x, granted
}

// All are the claims that wait or hold at that time.
func (c *Claims) All(now time.Time) []Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(now)
	return slices.Concat(copies(c.waits), copies(c.holds))
}

// Any reports whether any claim waits or holds at that time.
func (c *Claims) Any(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(now)
	return len(c.waits)+len(c.holds) > 0
}

// nextLook returns the time of the next look of a Poller that looked last at looked. It
// is zero if there is nothing to look for.
func (c *Claims) nextLook(looked time.Time, pace Pace, losses time.Duration) (next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waits) > 0 {
		next = c.due.next(c.waits, looked, pace)
	}
	if t := looked.Add(losses); len(c.holds) > 0 && (next.IsZero() || t.Before(next)) {
		next = t
	}
	c.awake = !next.IsZero()
	return next
}

// Waiting are the claims that wait at that time.
func (c *Claims) Waiting(now time.Time) []Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweepNowAndThen(now)
	return copies(c.waits)
}

// some reports whether any claim waits or holds, or did a moment ago.
func (c *Claims) some(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweepNowAndThen(now)
	return len(c.waits)+len(c.holds) > 0
}

// ByName are the names of some claims, and the claims of each.
func ByName(some []Claim) (names []string, byName map[string][]Claim) {
	byName = map[string][]Claim{}
	for _, x := range some {
		if byName[x.Name] == nil {
			names = append(names, x.Name)
		}
		byName[x.Name] = append(byName[x.Name], x)
	}
	return names, byName
}

func (c *Claims) find(t driver.Token) *Claim {
	if x := c.waits[t]; x != nil {
		return x
	}
	return c.holds[t]
}

func copies(some map[driver.Token]*Claim) (all []Claim) {
	for _, x := range some {
		all = append(all, *x)
	}
	return all
}

func (c *Claims) sweep(now time.Time) {
	c.swept = now
	lapsed := func(_ driver.Token, x *Claim) bool { return !x.Until.After(now) }
	maps.DeleteFunc(c.waits, lapsed)
	maps.DeleteFunc(c.holds, lapsed)
}

// sweepInterval is the shortest time between two sweeps, which drop lapsed claims. There
// may be thousands of claims, so not every step sweeps.
const sweepInterval = time.Second

func (c *Claims) sweepNowAndThen(now time.Time) {
	if now.Sub(c.swept) >= sweepInterval {
		c.sweep(now)
	}
}

func (c *Claims) wake() {
	select {
	case c.hurry <- struct{}{}:
	default:
	}
}
