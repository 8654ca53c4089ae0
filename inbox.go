package pawl

import (
	"sync"

	"github.com/pawl-go/pawl/driver"
)

// inbox knows whom a signal of the backend concerns: the claims that wait, and those that were granted, by
// their tokens. Nothing here blocks, for it is called from inside the driver.
type inbox struct {
	mu     sync.Mutex // protects the map, and the mail of each claim in it
	claims map[driver.Token]*claim
}

// mail is what the inbox has for one claim: the last signal, until it is granted; then its hold, to check.
type mail struct {
	signal  *driver.Signal // by itself, for most claims never have one
	full    bool
	look    bool          // something besides "granted" came, and the backend was not asked since
	arrived chan struct{} // holds one if signal is there; made by who waits, which most claims never do
	hold    *hold
}

// add begins to take signals for a claim.
func (b *inbox) add(c *claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claims[c.Token] = c
}

// holds notes the hold of a claim that was granted. It answers true if a signal says that the hold should
// be checked: it may have been lost before we heard that it was granted.
func (b *inbox) holds(c *claim, t *hold) (look bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.mail.hold = t
	return c.mail.look
}

func (b *inbox) remove(c *claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.claims, c.Token)
}

// arrival is readable when there is a signal to take.
func (b *inbox) arrival(c *claim) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := &c.mail
	if m.arrived == nil {
		m.arrived = make(chan struct{}, 1)
		if m.full {
			m.arrived <- struct{}{}
		}
	}
	return m.arrived
}

// take empties the mail, after arrival has said that there is something in it.
func (b *inbox) take(c *claim) driver.Signal {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.mail.full = false
	if c.mail.signal.Kind != driver.SignalGranted {
		c.mail.look = false // who takes it asks again
	}
	return *c.mail.signal
}

// put leaves a signal for the claim that it concerns, and returns its hold, if it has one.
func (b *inbox) put(s driver.Signal) *hold {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.claims[s.Token]
	if c == nil {
		return nil
	}
	c.mail.put(s)
	return c.mail.hold
}

// putAll leaves a signal for every claim.
func (b *inbox) putAll(s driver.Signal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.claims {
		c.mail.put(s)
	}
}

// put replaces what is there by "granted", which saves asking; and that by "lost", whichever came first: then
// only asking helps. Anything else says "look", as whatever is there does too.
func (m *mail) put(s driver.Signal) {
	if m.hold != nil {
		return
	}
	m.look = m.look || s.Kind != driver.SignalGranted
	switch {
	case !m.full, s.Kind == driver.SignalLost, s.Kind == driver.SignalGranted && m.signal.Kind != driver.SignalLost:
		m.signal = new(driver.Signal)
		*m.signal = s
	}
	if !m.full && m.arrived != nil {
		m.arrived <- struct{}{} // there is room: what was in it was read before m was emptied
	}
	m.full = true
}
