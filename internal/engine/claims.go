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

// Claims are a client's claims that wait or hold, each with its expiry. A backend passes
// to Claims the answers to its own steps, the signals that it receives, and the entries
// that it reads.
//
// A claim that another client has ended stays in Claims until it expires. Until then some
// polls are in vain.
type Claims struct {
	mu               sync.Mutex // protects the fields below
	waiting, holding map[driver.Token]*Claim
	schedule         pollSchedule
	sweptAt          time.Time
	hasNextPoll      bool          // a Poller has computed the time of its next poll
	pollSooner       chan struct{} // capacity 1; see PollSooner
}

// A Claim is one claim in Claims.
type Claim struct {
	Token driver.Token
	Name  string
	Until time.Time // when the claim expires, unless the client renews it
	Fence uint64    // the last fence that the client has seen on its name
	Queue int       // the length of the queue that the client has seen last

	held       bool              // the client knows of its grant
	ahead      int               // the number of claims ahead of it
	answeredAt time.Time         // the time of the last answer or signal for it
	changedAt  time.Time         // when its name was last granted
	opensAt    locktable.Instant // when its name opens without a request, as the client has seen it
}

// NewClaims returns an empty list.
func NewClaims() *Claims {
	return &Claims{waiting: map[driver.Token]*Claim{}, holding: map[driver.Token]*Claim{}, pollSooner: make(chan struct{}, 1)}
}

// PollSooner receives a value when the next poll is due earlier than the Poller has
// computed, for example for the first claim.
func (c *Claims) PollSooner() <-chan struct{} { return c.pollSooner }

// Acquired records the answer to a claim that the client sent at the time sent. It
// reports whether the claim waits or holds according to the answer. It returns false if
// err is not an answer of the backend.
func (c *Claims) Acquired(claim *driver.Claim, sent time.Time, err error) bool {
	held, refused := errors.AsType[*driver.HeldError](err)
	switch {
	case err == nil:
		c.Hold(claim.Token, claim.Name, time.Now().Add(claim.TTL))
	case refused && held.Position > 0:
		c.recordWaiting(claim, held, sent)
	case refused, errors.Is(err, driver.ErrValueNotBelow):
		c.Drop(claim.Token) // the claim has no place
		return false
	default:
		return false
	}
	return true
}

func (c *Claims) recordWaiting(claim *driver.Claim, held *driver.HeldError, sent time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.sweepIfDue(now)
	delete(c.holding, claim.Token)
	known := c.waiting[claim.Token]
	isNew := known == nil
	if isNew {
		known = &Claim{Token: claim.Token, Name: claim.Name, Fence: held.Fence, changedAt: now}
		c.waiting[claim.Token] = known
	}
	sooner := isNew || held.Position-1 < known.ahead
	known.Until, known.answeredAt, known.ahead, known.Queue = sent.Add(claim.QueueTTL), now, held.Position-1, max(known.Queue, held.Position)
	if sooner {
		c.schedule.add(known)
		c.wakePoller()
	}
}

// Hold records a lease that ends at until, unless it is renewed.
func (c *Claims) Hold(t driver.Token, name string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.sweepIfDue(now)
	delete(c.waiting, t)
	c.holding[t] = &Claim{Token: t, Name: name, Until: until, held: true, answeredAt: now}
	if !c.hasNextPoll { // not for each lease, because waking a Poller costs more than the rest of Hold
		c.wakePoller()
	}
}

// Renewed records the answers to renewals that the client sent at the time sent.
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

// Drop removes the claim of a token that neither waits nor holds.
func (c *Claims) Drop(t driver.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, t)
	delete(c.holding, t)
}

// Signaled records a signal for this client. Until stays the same, because a lease that
// was granted from the queue lasts as long as the place would have lasted.
func (c *Claims) Signaled(s driver.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if claim := c.find(s.Token); claim != nil && s.Kind == driver.SignalGranted {
		c.markSignaled(claim, true)
		claim.answeredAt = time.Now()
	}
}

// Compare compares claims with the entry of their name, which the client requested at the
// time asked. It returns the changes as signals for the client. It skips claims for which
// the client got an answer or a signal after asked.
func (c *Claims) Compare(claims []Claim, e *locktable.Entry, asked time.Time) (signals []driver.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range claims {
		if claim := c.find(one.Token); claim != nil && !claim.answeredAt.After(asked) {
			if s, isSignal := c.compare(claim, e, asked); isSignal {
				signals = append(signals, s)
			}
		}
	}
	return signals
}

func (c *Claims) compare(claim *Claim, e *locktable.Entry, asked time.Time) (s driver.Signal, isSignal bool) {
	changed := claim.Fence != e.Fence
	if changed {
		claim.Fence, claim.changedAt = e.Fence, asked
	}
	claim.Queue = len(e.Queue)
	place := slices.IndexFunc(e.Queue, func(w locktable.Waiter) bool { return w.Token == claim.Token })
	grant := slices.IndexFunc(e.Holders, func(h locktable.Holder) bool { return h.Token == claim.Token })
	switch s.Token = claim.Token; {
	case claim.held:
		s.Kind = driver.SignalLost
		return s, grant < 0
	case place >= 0:
		s.Kind = driver.SignalRetry
		changed = changed || place < claim.ahead
		if claim.ahead = place; changed && c.waiting[claim.Token] == claim {
			c.schedule.add(claim)
		}
		if at := e.OpensAt(); place == 0 && at != 0 && at != claim.opensAt {
			claim.opensAt, isSignal = at, true
		}
		return s, isSignal
	case grant >= 0:
		s.Kind, s.Fence, s.Fences = driver.SignalGranted, e.Holders[grant].Fence, e.Holders[grant].Fences
	default:
		s.Kind = driver.SignalRetry // the claim has lost its place, or its place is not stored in the entry
	}
	c.markSignaled(claim, grant >= 0)
	return s, true
}

// markSignaled moves a claim from waiting to holding, because its client gets a signal:
// the claim was granted, or must ask again. From then on, a Poller polls only for its
// loss.
func (c *Claims) markSignaled(claim *Claim, granted bool) {
	delete(c.waiting, claim.Token)
	c.holding[claim.Token], claim.held = claim, granted
}

// All returns the claims that wait or hold at that time.
func (c *Claims) All(now time.Time) []Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(now)
	return slices.Concat(cloneAll(c.waiting), cloneAll(c.holding))
}

// Any reports whether any claim waits or holds at that time.
func (c *Claims) Any(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(now)
	return len(c.waiting)+len(c.holding) > 0
}

// nextPoll returns the time of the next poll of a Poller. polledAt is the time of its
// last poll. nextPoll returns zero if no claim waits or holds.
func (c *Claims) nextPoll(polledAt time.Time, pace Pace, losses time.Duration) (next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) > 0 {
		next = c.schedule.next(c.waiting, polledAt, pace)
	}
	if t := polledAt.Add(losses); len(c.holding) > 0 && (next.IsZero() || t.Before(next)) {
		next = t
	}
	c.hasNextPoll = !next.IsZero()
	return next
}

// Waiting returns the claims that wait, or waited within the last sweepInterval.
func (c *Claims) Waiting(now time.Time) []Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweepIfDue(now)
	return cloneAll(c.waiting)
}

// ByName returns the names of the claims, and the claims of each name.
func ByName(claims []Claim) (names []string, byName map[string][]Claim) {
	byName = map[string][]Claim{}
	for _, claim := range claims {
		if byName[claim.Name] == nil {
			names = append(names, claim.Name)
		}
		byName[claim.Name] = append(byName[claim.Name], claim)
	}
	return names, byName
}

func (c *Claims) find(t driver.Token) *Claim {
	if claim := c.waiting[t]; claim != nil {
		return claim
	}
	return c.holding[t]
}

func cloneAll(claims map[driver.Token]*Claim) (all []Claim) {
	for _, claim := range claims {
		all = append(all, *claim)
	}
	return all
}

func (c *Claims) sweep(now time.Time) {
	c.sweptAt = now
	expired := func(_ driver.Token, claim *Claim) bool { return !claim.Until.After(now) }
	maps.DeleteFunc(c.waiting, expired)
	maps.DeleteFunc(c.holding, expired)
}

// sweepInterval is the shortest time between two sweeps, which drop expired claims. There
// may be thousands of claims, so not every step sweeps.
const sweepInterval = time.Second

func (c *Claims) sweepIfDue(now time.Time) {
	if now.Sub(c.sweptAt) >= sweepInterval {
		c.sweep(now)
	}
}

func (c *Claims) wakePoller() {
	select {
	case c.pollSooner <- struct{}{}:
	default:
	}
}
