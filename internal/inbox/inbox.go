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
	claims map[driver.Token]*Inbox[H] // for each token, the inbox that was added last, see Inbox.next
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
	all := &Inboxes[H]{}
	for i := range all.shard {
		all.shard[i].claims = map[driver.Token]*Inbox[H]{}
	}
	return all
}

// shardOf returns the shard of a token. Tokens are random.
func (all *Inboxes[H]) shardOf(t driver.Token) *shard[H] { return &all.shard[t[0]%shards].shard }

// Add begins to receive signals for a claim. A second call does nothing.
func (all *Inboxes[H]) Add(t driver.Token, box *Inbox[H]) {
	s := all.shardOf(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.claims[t]
	for x := first; x != nil; x = x.next {
		if x == box {
			return
		}
	}
	box.next, s.claims[t] = first, box
}

// Remove stops receiving signals for the claim. Other inboxes with the same token stay.
func (all *Inboxes[H]) Remove(t driver.Token, box *Inbox[H]) {
	s := all.shardOf(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.claims[t]
	if first == box && box.next == nil { // the usual case
		delete(s.claims, t)
		return
	}
	for at := &first; *at != nil; at = &(*at).next {
		if *at == box {
			*at, box.next = box.next, nil
			s.claims[t] = first
			return
		}
	}
}

// Len returns the number of inboxes.
func (all *Inboxes[H]) Len() (n int) {
	all.each(func(*Inbox[H]) { n++ })
	return n
}

// SetHold records the hold of a granted claim. It returns true if the caller should check
// the hold, because a signal other than "granted" came before.
func (all *Inboxes[H]) SetHold(t driver.Token, box *Inbox[H], h H) (mustCheck bool) {
	s := all.shardOf(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	box.hold, box.hasHold = h, true
	return box.mustCheck
}

// Arrival returns a channel that is readable when Take has a signal to return.
func (all *Inboxes[H]) Arrival(t driver.Token, box *Inbox[H]) <-chan struct{} {
	s := all.shardOf(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if box.arrived == nil {
		box.arrived = make(chan struct{}, 1)
		if box.signal != nil {
			box.arrived <- struct{}{}
		}
	}
	return box.arrived
}

// Take empties the inbox and returns its signal. Call it after reading from Arrival.
func (all *Inboxes[H]) Take(t driver.Token, box *Inbox[H]) driver.Signal {
	s := all.shardOf(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := *box.signal
	if box.signal = nil; taken.Kind != driver.SignalGranted {
		box.mustCheck = false // the caller sends a request
	}
	return taken
}

// Put delivers a signal to the claims with its token, and returns their holds.
func (all *Inboxes[H]) Put(signal driver.Signal) (holds []H) {
	s := all.shardOf(signal.Token)
	s.mu.Lock()
	defer s.mu.Unlock()
	for box := s.claims[signal.Token]; box != nil; box = box.next {
		if box.put(signal); box.hasHold {
			holds = append(holds, box.hold)
		}
	}
	return holds
}

// PutAll delivers a signal to every claim.
func (all *Inboxes[H]) PutAll(signal driver.Signal) {
	all.each(func(box *Inbox[H]) { box.put(signal) })
}

func (all *Inboxes[H]) each(f func(box *Inbox[H])) {
	for i := range all.shard {
		s := &all.shard[i].shard
		s.mu.Lock()
		for _, box := range s.claims {
			for ; box != nil; box = box.next {
				f(box)
			}
		}
		s.mu.Unlock()
	}
}

// put keeps "lost" rather than any other signal, because the claim must then send a
// request. It keeps "granted" rather than "retry", because "granted" saves a request. The
// order of arrival does not matter.
func (box *Inbox[H]) put(s driver.Signal) {
	if box.hasHold {
		return
	}
	box.mustCheck = box.mustCheck || s.Kind != driver.SignalGranted
	if box.signal == nil && box.arrived != nil {
		box.arrived <- struct{}{} // there is room, because the inbox is emptied only after arrived was read
	}
	if box.signal == nil || s.Kind == driver.SignalLost || s.Kind == driver.SignalGranted && box.signal.Kind != driver.SignalLost {
		box.signal = new(s)
	}
}
