// Package inbox delivers the backend's signals, by their tokens, to the claims that wait,
// and to the holds of granted claims. No function blocks, because a driver may call it
// from inside its own methods.
package inbox

import (
	"sync"

	"github.com/pawl-go/pawl/driver"
)

// Claims are independent of each other, so they are in several shards with a mutex each.
// Otherwise goroutines on different names would spend more time on the mutex than on
// their locks.
const shards = 16

// Inboxes are the inboxes of a client's claims. H is the type of a hold, which a signal
// makes the client check.
type Inboxes[H any] struct {
	shard [shards]struct {
		shard[H]
		_ [64]byte // keeps two shards out of one cache line
	}
}

type shard[H any] struct {
	mu     sync.Mutex                 // protects the map, and each inbox in it
	claims map[driver.Token]*Inbox[H] // the inbox that was added last, see Inbox.next
}

// An Inbox receives the signals of one claim. Until the grant it keeps the most useful
// signal, see put, and then the hold to check. It is a field of the claim.
type Inbox[H any] struct {
	// Protected by the shard's lock.
	signal    *driver.Signal // the signal to take, or nil; a pointer, because most claims never get one
	mustCheck bool           // a signal other than "granted" came, and the client has sent no request since
	arrived   chan struct{}  // has one value if signal is not nil; made by Arrival, which most claims never call
	hold      H
	hasHold   bool
	next      *Inbox[H] // the next inbox with the same token, if a lease is attached twice
}

// New makes empty inboxes.
func New[H any]() *Inboxes[H] {
	a := &Inboxes[H]{}
	for i := range a.shard {
		a.shard[i].claims = map[driver.Token]*Inbox[H]{}
	}
	return a
}

// shardOf returns the shard of a token. Tokens are random.
func (a *Inboxes[H]) shardOf(t driver.Token) *shard[H] { return &a.shard[t[0]%shards].shard }

// Add begins to receive signals for a claim. A second call does nothing.
func (a *Inboxes[H]) Add(t driver.Token, b *Inbox[H]) {
	s := a.shardOf(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.claims[t]
	for x := first; x != nil; x = x.next {
		if x == b {
			return
		}
	}
	b.next, s.claims[t] = first, b
}

// Remove stops receiving signals for the claim. Other inboxes with the same token stay.
func (a *Inboxes[H]) Remove(t driver.Token, b *Inbox[H]) {
	s := a.shardOf(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.claims[t]
	if first == b && b.next == nil { // the usual case
		delete(s.claims, t)
		return
	}
	for at := &first; *at != nil; at = &(*at).next {
		if *at == b {
			*at, b.next = b.next, nil
			s.claims[t] = first
			return
		}
	}
}

// Len returns the number of inboxes.
func (a *Inboxes[H]) Len() (n int) {
	a.each(func(*Inbox[H]) { n++ })
	return n
}

// SetHold records the hold of a granted claim. It returns true if the caller should check
// the hold, because a signal other than "granted" came before.
func (a *Inboxes[H]) SetHold(t driver.Token, b *Inbox[H], h H) (mustCheck bool) {
	s := a.shardOf(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	b.hold, b.hasHold = h, true
	return b.mustCheck
}

// Arrival returns a channel that is readable when Take has a signal to return.
func (a *Inboxes[H]) Arrival(t driver.Token, b *Inbox[H]) <-chan struct{} {
	s := a.shardOf(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.arrived == nil {
		b.arrived = make(chan struct{}, 1)
		if b.signal != nil {
			b.arrived <- struct{}{}
		}
	}
	return b.arrived
}

// Take empties the inbox and returns its signal. Call it after reading from Arrival.
func (a *Inboxes[H]) Take(t driver.Token, b *Inbox[H]) driver.Signal {
	s := a.shardOf(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := *b.signal
	if b.signal = nil; taken.Kind != driver.SignalGranted {
		b.mustCheck = false // the caller sends a request
	}
	return taken
}

// Put delivers a signal to the claims with its token, and returns their holds.
func (a *Inboxes[H]) Put(signal driver.Signal) (holds []H) {
	s := a.shardOf(signal.Token)
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := s.claims[signal.Token]; b != nil; b = b.next {
		if b.put(signal); b.hasHold {
			holds = append(holds, b.hold)
		}
	}
	return holds
}

// PutAll delivers a signal to every claim.
func (a *Inboxes[H]) PutAll(signal driver.Signal) {
	a.each(func(b *Inbox[H]) { b.put(signal) })
}

func (a *Inboxes[H]) each(f func(b *Inbox[H])) {
	for i := range a.shard {
		s := &a.shard[i].shard
		s.mu.Lock()
		for _, b := range s.claims {
			for ; b != nil; b = b.next {
				f(b)
			}
		}
		s.mu.Unlock()
	}
}

// put keeps "lost" rather than any other signal, because the claim must then send a
// request. It keeps "granted" rather than "retry", because "granted" saves a request. The
// order of arrival does not matter.
func (b *Inbox[H]) put(s driver.Signal) {
	if b.hasHold {
		return
	}
	b.mustCheck = b.mustCheck || s.Kind != driver.SignalGranted
	if b.signal == nil && b.arrived != nil {
		b.arrived <- struct{}{} // there is room, because the inbox is emptied only after arrived was read
	}
	if b.signal == nil || s.Kind == driver.SignalLost || s.Kind == driver.SignalGranted && b.signal.Kind != driver.SignalLost {
		b.signal = new(s)
	}
}
