package localqueue

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A queue is the queue of one name. It exists while there are waiters, and until its hold
// ends, even if the time for passing that hold on is over. Its shard's mutex protects it.
type queue[W any] struct {
	shard *shard[W]
	name  string

	// The waiters, in the order of their arrival: first those that ask the backend or are
	// in its queue, then those whose turn has not come.
	front, back *Waiter[W]
	firstLocal  *Waiter[W] // the first waiter whose turn has not come
	length      int
	weight      int64 // the weight of all waiters ahead of firstLocal; the sum may exceed an int
	askers      int   // the number of waiters in the state asking
	queued      int   // the number of waiters in the state queued
	maxAsking   int   // the largest number of waiters that may ask at once; 0 means no limit
	ranks       ranks // the ranks of all waiters; nil until one is needed

	lastHeld    *driver.HeldError // the last answer about the holder of the name
	othersAhead int               // the number of claims of other processes ahead of the waiter that got lastHeld
	hasRivals   bool              // other processes held the name, or were ahead, at the last answer "held"

	// failingSince is the time since which all requests have failed, and failure is the
	// last error; both are zero if the backend answers.
	failingSince time.Time
	failure      error

	// hold may be passed on passesLeft times until passUntil. It is nil if there is none.
	hold       Hold[W]
	passesLeft int
	passUntil  time.Time
	stopTimer  func() bool // stops the timer that gives the head its turn at passUntil; nil without a timer
}

// A state is the stage that a waiter has reached.
type state int8

const (
	local  state = iota // waits for its turn to ask the backend
	asking              // may ask the backend, and was not answered "held"
	queued              // was answered "held", and is in the backend's queue
	passed              // was given a lease of this process
	left                // is out of the queue
)

// push puts a waiter at the end.
func (q *queue[W]) push(w *Waiter[W]) {
	w.queue, w.prev = q, q.back
	if q.back == nil {
		q.front = w
	} else {
		q.back.next = w
	}
	q.back = w
	if q.firstLocal == nil {
		q.firstLocal = w
	}
	q.length++
	if q.ranks != nil {
		w.slot = q.ranks.add()
	}
}

// unlink removes a waiter from the queue and sets its new state.
func (q *queue[W]) unlink(w *Waiter[W], became state) {
	if w.state != local {
		q.weight -= int64(w.weight)
	}
	if w.state == asking {
		q.askers--
	}
	if w.state == queued {
		q.queued--
	}
	if q.firstLocal == w {
		q.firstLocal = w.next
	}
	if w.prev == nil {
		q.front = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.back = w.prev
	} else {
		w.next.prev = w.prev
	}
	q.length--
	if q.ranks != nil {
		q.ranks.remove(w.slot)
		if len(q.ranks) > 2*q.length+64 {
			q.ranks = nil // make new ranks, because many slots are empty
		}
	}
	w.queue, w.prev, w.next, w.state = nil, nil, nil, became
}

// advance lets each waiter whose turn has come ask the backend. Each change of the queue
// calls it.
func (q *queue[W]) advance(now time.Time) {
	for w := q.firstLocal; w != nil; w = q.firstLocal {
		q.shard.visits++
		switch {
		case w != q.front:
			// w may ask before the waiters ahead are answered only if all could hold at
			// the same time, and no claim was answered "held".
			if q.queued > 0 || q.weight+int64(w.weight) > int64(w.limit) || q.maxAsking > 0 && q.askers >= q.maxAsking {
				return
			}
		case q.passable(w, now):
			q.wakeAtPassEnd(now)
			return
		}
		q.firstLocal = w.next
		q.weight += int64(w.weight)
		w.state = asking
		q.askers++
		w.wake()
	}
}

// passable reports whether the hold could be passed to w, which is the head.
func (q *queue[W]) passable(w *Waiter[W], now time.Time) bool {
	return q.hold != nil && w.state == local && now.Before(q.passUntil) && q.hold.Serves(w.Claim)
}

// wakeAtPassEnd gives the head its turn when the hold cannot be passed on any more.
func (q *queue[W]) wakeAtPassEnd(now time.Time) {
	if q.stopTimer != nil {
		return
	}
	s, h, passUntil := q.shard, q.hold, q.passUntil
	q.stopTimer = s.after(passUntil.Sub(now), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if q.hold == h { // otherwise the timer fired although it was stopped
			q.endHold(passUntil)
		}
	})
}

// endHold removes the hold, and lets the waiters that waited for it ask.
func (q *queue[W]) endHold(now time.Time) {
	q.removeHold()
	q.advance(now)
	q.shard.removeIfUnused(q)
}

func (q *queue[W]) removeHold() {
	if q.stopTimer != nil {
		q.stopTimer()
	}
	q.hold, q.passesLeft, q.stopTimer = nil, 0, nil
}

// recordAnswer records that the backend has answered.
func (q *queue[W]) recordAnswer() { q.failingSince, q.failure = time.Time{}, nil }

// waitedSince returns the time since which w has waited for a failing backend.
func (q *queue[W]) waitedSince(w *Waiter[W]) time.Time {
	if entered := q.shard.start.Add(w.enteredAt); entered.After(q.failingSince) {
		return entered
	}
	return q.failingSince
}

// knownHolder returns the holder of the name: from the backend's last answer, or, if the
// waiters did not ask, the hold of this process.
func (q *queue[W]) knownHolder() *driver.HeldError {
	held := &driver.HeldError{Name: q.name}
	switch {
	case q.lastHeld != nil:
		*held = *q.lastHeld
	case q.hold != nil:
		held.Holders, held.Holder = 1, q.hold.Holder()
		held.Fence = held.Holder.Fence
	}
	return held
}

func (q *queue[W]) rank(w *Waiter[W]) int {
	switch {
	case w == q.front:
		return 1
	case w == q.back:
		return q.length
	case q.ranks == nil:
		for x := q.front; x != nil; x = x.next {
			q.shard.visits++
			x.slot = q.ranks.add()
		}
	}
	return q.ranks.upTo(w.slot)
}
