package localqueue

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A Waiter is a claim in a queue. It is a part of the claim, and begins empty.
type Waiter[W any] struct {
	Claim W // the caller's own

	shard         *shard[W]
	weight, limit int32         // as in driver.Claim, which are no more than driver.Unlimited
	turn          chan struct{} // nil if its turn came at once

	// Protected by the shard's lock.
	state      state
	slot       int32     // in the queue's ranks
	queue      *queue[W] // nil when it has left
	prev, next *Waiter[W]
	came       time.Duration // since the start of the queues, if it had to wait for its turn
	err        *error        // it is out because of that; written before turn is closed
}

// Turn is closed when w has not to wait for its turn any more: it may ask, or Hold.Pass
// has left a lease in its claim, or Err says why it is out. It is nil if w may ask at
// once.
func (w *Waiter[W]) Turn() <-chan struct{} { return w.turn }

// wake lets w know that its turn has come.
func (w *Waiter[W]) wake() {
	if w.turn != nil {
		close(w.turn)
	}
}

// Err is for when the turn has come: w is out, if it is not nil, because of what one
// ahead of it heard from a failing backend.
func (w *Waiter[W]) Err() error {
	if w.err == nil {
		return nil
	}
	return *w.err
}

// Alike is how many stand right behind w of whom alike says that w's hold could be passed
// to them, up to most; and whether they are all who stand behind it, and may be back
// before it goes to another process.
func (w *Waiter[W]) Alike(most int, alike func(W) bool) (n int, all bool) {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	if w.queue == nil {
		return 0, true
	}
	x := w.next
	for ; x != nil && n < most && alike(x.Claim); x = x.next {
		w.shard.looked++
		n++
	}
	return n, x == nil && !w.queue.rivals
}

// Told notes that the backend answered w with "held", and whether by other processes.
func (w *Waiter[W]) Told(held *driver.HeldError, rivals bool) {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	q := w.queue
	if q == nil {
		return
	}
	if w.state == asking {
		w.state = queued
		q.queued++
	}
	q.last, q.others = held, max(held.Position-q.rank(w), 0)
	q.rivals = rivals || q.others > 0
	q.answered()
}

// Failed notes that w got no answer to what it sent then. It says since when that is so,
// as far as w has borne it: those who waited behind others bore it with them.
func (w *Waiter[W]) Failed(sent time.Time, err error) (since time.Time) {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	q := w.queue
	if q == nil {
		return sent
	}
	q.failure = err
	if q.failing.IsZero() {
		q.failing = sent
	}
	if w.turn == nil {
		return sent
	}
	return q.borne(w)
}

// FailOthers ends the waiting of all here who have borne a failing backend for that long,
// in the name of w, which asked for them. Each by itself would find out no sooner than
// those ahead of it.
func (w *Waiter[W]) FailOthers(patience time.Duration, err error, now time.Time) {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	q := w.queue
	if q == nil {
		return
	}
	// They stand in the order of their coming, so whoever came after one who stays,
	// stays.
	for x := q.local; x != nil && now.Sub(q.borne(x)) >= patience; x = q.local {
		w.shard.looked++
		x.err = &err
		q.unlink(x, left)
		x.wake()
	}
	q.advance(now)
}

// Heard is why w waits, as far as that is known here: what the backend failed with, or a
// *driver.HeldError with w's own place, those of other processes included that were ahead
// by the last answer. It is nil if w has left.
func (w *Waiter[W]) Heard() error {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	q := w.queue
	if q == nil {
		return nil
	}
	if q.failure != nil {
		return q.failure
	}
	held := &driver.HeldError{Name: q.name, Local: true}
	if q.last != nil {
		*held = *q.last
	}
	held.Position = q.others + q.rank(w)
	return held
}

// Leave takes w out of the queue, and lets the next one have its turn. It answers true if
// a lease was passed to w in the meantime: a waiter that gives up at that very moment has
// to pass it on.
func (w *Waiter[W]) Leave(now time.Time) (passedOn bool) {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	if q := w.queue; q != nil {
		q.unlink(w, left)
		q.advance(now)
		w.shard.tidy(q)
	}
	return w.state == passed
}
