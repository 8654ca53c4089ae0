package pawl

import (
	"sync"

	"github.com/pawl-go/pawl/driver"
)

// inbox hands the backend's signals to the claims that wait for them. Nothing here blocks: it is called from
// inside the driver.
type inbox struct {
	mu    sync.Mutex // protects the map, and each mail in it
	boxes map[driver.Token]*mail
}

// mail is the last signal of one claim. The channel is made by who waits, which most claims never do.
type mail struct {
	signal  driver.Signal
	full    bool
	arrived chan struct{} // holds one, if signal is there
}

// add makes signals for t go to m. It comes before the first request, for a signal may be quicker than the
// reply.
func (b *inbox) add(t driver.Token, m *mail) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.boxes[t] = m
}

func (b *inbox) remove(t driver.Token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.boxes, t)
}

// arrival is readable when there is a signal to take.
func (b *inbox) arrival(m *mail) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.arrived == nil {
		m.arrived = make(chan struct{}, 1)
		if m.full {
			m.arrived <- struct{}{}
		}
	}
	return m.arrived
}

// take empties m, after arrival has said that there is something in it.
func (b *inbox) take(m *mail) driver.Signal {
	b.mu.Lock()
	defer b.mu.Unlock()
	m.full = false
	return m.signal
}

// put leaves a signal for whom it concerns: one token, or with a zero token everybody.
func (b *inbox) put(s driver.Signal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.Token.IsZero() {
		for _, m := range b.boxes {
			m.put(s)
		}
	} else if m := b.boxes[s.Token]; m != nil {
		m.put(s)
	}
}

// put replaces what is there only by "granted": anything else says "look", as whatever is there does too.
func (m *mail) put(s driver.Signal) {
	if m.full && s.Kind != driver.Granted {
		return
	}
	m.signal = s
	if !m.full && m.arrived != nil {
		m.arrived <- struct{}{} // there is room: what was in it was read before m was emptied
	}
	m.full = true
}
