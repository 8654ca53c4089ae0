package localqueue

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A queue is that of one name. It exists while somebody waits or a hold may be passed on.
// Its shard has the lock.
type queue[W any] struct {
	shard *shard[W]
	name  string

	// The waiters, in the order of their coming: at first those who ask the backend or
	// stand in its queue, then those whose turn has not come.
	front, back *Waiter[W]
	local       *Waiter[W] // the first whose turn has not come
	length      int
	weight      int64 // of those ahead of local, as a sum that int does not hold everywhere
	queued      int   // how many of them were told "held"
	ranks       ranks // of all; nil until a place is asked for

	last   *driver.HeldError // what was heard last of who holds the name
	others int               // how many of other processes were ahead of who heard it
	rivals bool              // other processes hold the name, or were ahead, when the head was last told "held"

	// Since when the backend fails whoever asks here, one after the other, and how; zero
	// if it answers.
	failing time.Time
	failure error

	// The hold that may be passed on, nil if there is none: how often, and until when.
	hold   Hold[W]
	spare  int
	closes time.Time
	stop   func() bool // of the timer that gives the head its turn then; nil if nobody needed it
}

// A state is how far a waiter has come.
type state int8

const (
	local  state = iota // waits for its turn to ask the backend
	asking              // may ask, and has not been told "held"
	queued              // was told "held", and stands in the backend's queue
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
	if q.local == nil {
		q.local = w
	}
	q.length++
	if q.ranks != nil {
		w.slot = q.ranks.add()
	}
}

// unlink takes a waiter out, wherever it stands, and says what has become of it.
func (q *queue[W]) unlink(w *Waiter[W], became state) {
	if w.state != local {
		q.weight -= int64(w.weight)
	}
	if w.state == queued {
		q.queued--
	}
	if q.local == w {
		q.local = w.next
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
			q.ranks = nil // as many have left as it takes to make new ones
		}
	}
	w.queue, w.prev, w.next, w.state = nil, nil, nil, became
}

// advance lets those ask whose turn it is. It is called after each change.
func (q *queue[W]) advance(now time.Time) {
	for w := q.local; w != nil; w = q.local {
		q.shard.looked++
		switch {
		case w != q.front:
			// It may ask beside those ahead only if all could be granted together, and
			// nothing is known that says they could not.
			if q.queued > 0 || q.weight+int64(w.weight) > int64(w.limit) {
				return
			}
		case q.passable(w, now):
			q.wakeAtClose(now)
			return
		}
		q.local = w.next
		q.weight += int64(w.weight)
		w.state = asking
		w.wake()
	}
}

// passable reports whether the hold could be passed to w, which is the head.
func (q *queue[W]) passable(w *Waiter[W], now time.Time) bool {
	return q.hold != nil && w.state == local && now.Before(q.closes) && q.hold.Alike(w.Claim)
}

// wakeAtClose gives the head its turn when the hold cannot be passed on any more.
func (q *queue[W]) wakeAtClose(now time.Time) {
	if q.stop != nil {
		return
	}
	s, h, closes := q.shard, q.hold, q.closes
	q.stop = s.after(closes.Sub(now), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if q.hold == h { // else it went back, and this timer came too late to be stopped
			q.end(closes)
		}
	})
}

// end forgets the hold, and lets those ask who waited for it.
func (q *queue[W]) end(now time.Time) {
	q.shut()
	q.advance(now)
	q.shard.tidy(q)
}

// shut forgets the hold.
func (q *queue[W]) shut() {
	if q.stop != nil {
		q.stop()
	}
	q.hold, q.spare, q.stop = nil, 0, nil
}

// answered notes that the backend answers.
func (q *queue[W]) answered() { q.failing, q.failure = time.Time{}, nil }

// borne is since when w bears a failing backend.
func (q *queue[W]) borne(w *Waiter[W]) time.Time {
	if came := q.shard.start.Add(w.came); came.After(q.failing) {
		return came
	}
	return q.failing
}

func (q *queue[W]) rank(w *Waiter[W]) int {
	switch {
	case w == q.front:
		return 1
	case w == q.back:
		return q.length
	case q.ranks == nil:
		for x := q.front; x != nil; x = x.next {
			q.shard.looked++
			x.slot = q.ranks.add()
		}
	}
	return q.ranks.upTo(w.slot)
}
