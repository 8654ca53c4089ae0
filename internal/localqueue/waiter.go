package localqueue

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A Waiter is a claim in a queue. The claim contains it. The zero value is ready.
//
// Only a waiter that asks the backend calls CountPassable and the methods below it,
// except Leave and WaitReason. Leave or Queues.Granted removes it from its queue.
type Waiter[W any] struct {
	Claim W // the caller's own

	shard         *shard[W]
	weight, limit int32         // as in driver.Claim; they are no more than driver.Unlimited
	turn          chan struct{} // nil if its turn came at once

	// Protected by the shard's lock.
	state      state
	slot       int32     // its slot in the queue's ranks
	queue      *queue[W] // nil when it has left
	prev, next *Waiter[W]
	enteredAt  time.Duration // the time of Enter since shard.start; set only if its turn did not come at once
	err        *error        // why it is out of the queue; written before turn is closed
}

// Turn returns a channel that is closed when w's turn has come: it may ask, or Hold.Pass
// has stored a lease in its claim, or Err returns an error. Turn returns nil if w may ask
// at once.
func (w *Waiter[W]) Turn() <-chan struct{} { return w.turn }

// wake closes Turn.
func (w *Waiter[W]) wake() {
	if w.turn != nil {
		close(w.turn)
	}
}

// Err is valid when the turn has come. If it is not nil, w is out of the queue, because a
// waiter ahead of it met this error of a failing backend.
func (w *Waiter[W]) Err() error {
	if w.err == nil {
		return nil
	}
	return *w.err
}

// CountPassable counts the next waiters, up to `most`, to which w's hold could be passed.
// It stops at the first waiter for which serves returns false. all is true if these are
// all waiters behind w, and Queues knows of no claim of another process.
func (w *Waiter[W]) CountPassable(most int, serves func(W) bool) (n int, all bool) {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	x := w.next
	for ; x != nil && n < most && serves(x.Claim); x = x.next {
		w.shard.visits++
		n++
	}
	return n, x == nil && !w.queue.hasRivals
}

// RecordHeld records the answer "held". rivals means that other processes hold the name.
func (w *Waiter[W]) RecordHeld(held *driver.HeldError, rivals bool) {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	q := w.queue
	if w.state == asking {
		w.state = queued
		q.askers--
		q.queued++
	}
	if w.limit < driver.Unlimited {
		// Let one waiter ask at a time. Requests that are under way together may
		// overtake each other, and if only some of the claims fit, they would not be
		// served in order. Readers all fit once one of them does.
		q.maxAsking = 1
	}
	q.lastHeld, q.othersAhead = held, max(held.Position-q.rank(w), 0)
	q.hasRivals = rivals || q.othersAhead > 0
	q.recordAnswer()
}

// RecordFailure records that w got no answer to a request sent at `sent`. It returns the
// time since which w has waited for a failing backend, perhaps behind others.
func (w *Waiter[W]) RecordFailure(sent time.Time, err error) (since time.Time) {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	q := w.queue
	q.failure = err
	if q.failingSince.IsZero() {
		q.failingSince = sent
	}
	if w.turn == nil {
		return sent
	}
	return q.waitedSince(w)
}

// FailLocalWaiters fails the waiters that have waited for a failing backend for
// `patience`. The requests of w count for all of them: their own turn would come only
// after the waiters ahead had failed, one after the other.
func (w *Waiter[W]) FailLocalWaiters(patience time.Duration, err error, now time.Time) {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	q := w.queue
	// The waiters are in the order of their arrival, so the first one that has not waited
	// for `patience` ends the loop.
	for x := q.firstLocal; x != nil && now.Sub(q.waitedSince(x)) >= patience; x = q.firstLocal {
		w.shard.visits++
		x.err = &err
		q.unlink(x, left)
		x.wake()
	}
	q.advance(now)
}

// WaitReason returns why w waits, according to the last answer: the error of the backend,
// or a *driver.HeldError with w's position, which includes the claims of other processes
// that were ahead then. It is nil if w has left.
func (w *Waiter[W]) WaitReason() error {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	q := w.queue
	if q == nil {
		return nil
	}
	if q.failure != nil {
		return q.failure
	}
	held := q.knownHolder()
	held.Position = q.othersAhead + q.rank(w)
	return held
}

// Leave removes w from the queue, and gives the next waiter its turn. It returns true if
// a lease was passed to w meanwhile: a waiter that gives up has to pass that lease on.
func (w *Waiter[W]) Leave(now time.Time) (gotLease bool) {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	if q := w.queue; q != nil {
		q.unlink(w, left)
		q.advance(now)
		w.shard.removeIfUnused(q)
	}
	return w.state == passed
}
