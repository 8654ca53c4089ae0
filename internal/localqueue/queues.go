package localqueue

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A Hold is an exclusive hold of a name in the backend, from which several leases can be
// made, one after the other. Its methods are called with the queue locked: they must not
// block, or call methods of Queues.
type Hold[W any] interface {
	// Serves reports whether a lease of this hold would serve the claim as well as a
	// lease of its own.
	Serves(claim W) bool
	// Pass makes the next lease of the hold, after the last one was released, and stores
	// it in the claim. It returns false if that is not possible.
	Pass(claim W) bool
	// Lost reports whether the hold has ended without a release.
	Lost() bool
	// Holder returns the present lease of the hold, as the backend would show it.
	Holder() driver.Holder
}

// The queues are in several shards with a mutex each. With a single mutex, goroutines
// with different names would spend more time on it than on their locks.
const shards = 16

// Queues are the queues of all names. W is the type of the data that the caller keeps
// with a waiter.
type Queues[W any] struct {
	seed  maphash.Seed
	shard [shards]struct {
		shard[W]
		_ [64]byte // keeps two shards out of one cache line
	}
}

// A shard is the queues of some names.
type shard[W any] struct {
	start   time.Time
	handoff time.Duration
	after   func(d time.Duration, f func()) (stop func() bool)

	mu     sync.Mutex // protects the fields below, and the queues and waiters
	queues map[string]*queue[W]
	idle   *queue[W] // an unused queue for the next name: an uncontended lock uses a queue only for a moment
	visits int       // the number of waiters that loops have visited, for the tests
}

// New makes the queues of a process. A hold may be passed on for `handoff` after its
// grant, or never if handoff is negative. The function after works like time.AfterFunc.
func New[W any](
	now time.Time, handoff time.Duration, after func(d time.Duration, f func()) (stop func() bool),
) *Queues[W] {
	qs := &Queues[W]{seed: maphash.MakeSeed()}
	for i := range qs.shard {
		qs.shard[i].shard = shard[W]{
			start: now, handoff: handoff, after: after, queues: map[string]*queue[W]{},
		}
	}
	return qs
}

func (qs *Queues[W]) shardOf(name string) *shard[W] {
	return &qs.shard[maphash.String(qs.seed, name)%shards].shard
}

// Names returns the number of names that have a queue.
func (qs *Queues[W]) Names() int {
	n := 0
	for i := range qs.shard {
		s := &qs.shard[i].shard
		s.mu.Lock()
		n += len(s.queues)
		s.mu.Unlock()
	}
	return n
}

// Enter puts w, the waiter of claim, at the end of the queue of c's name. It reads only
// the name, the weight and the limit of c.
func (qs *Queues[W]) Enter(w *Waiter[W], c *driver.Claim, claim W, now time.Time) {
	s := qs.shardOf(c.Name)
	w.Claim, w.shard, w.weight, w.limit = claim, s, int32(c.Weight), int32(c.Limit)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queueOf(c.Name)
	if q.front == nil {
		q.lastHeld, q.othersAhead, q.hasRivals, q.maxAsking = nil, 0, false, 0 // earlier answers are outdated
		q.recordAnswer()
	}
	q.push(w)
	q.advance(now)
	if w.state == local {
		w.turn, w.enteredAt = make(chan struct{}), now.Sub(s.start)
	}
}

// CheckTry returns an error if waiters of this process are ahead of a try. It ignores
// waiters that ask the backend, and could hold at the same time as the try. CheckTry does
// not ask the backend.
func (qs *Queues[W]) CheckTry(c *driver.Claim) error {
	s := qs.shardOf(c.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[c.Name]
	if q == nil || q.front == nil {
		return nil
	}
	if q.failure != nil {
		return q.failure // it is unknown whether the name is held
	}
	// An exclusive claim asks alone, so only the first waiter can be one that asks.
	if c.Weight != driver.Exclusive && q.queued == 0 && q.firstLocal == nil && q.front.weight != driver.Exclusive {
		return nil
	}
	known := q.knownHolder()
	return &driver.HeldError{Name: c.Name, Holders: known.Holders, Holder: known.Holder}
}

// Granted takes w, whose claim the backend has granted, out of the queue; w is nil for a
// claim that was never in it, such as a try. From now on h, if it is exclusive, may be
// passed on `spare` times. If w had to wait for other processes, they may wait again.
// Then only as many waiters as there are now get h before it goes back to the backend,
// even if more come meanwhile. An earlier hold of this name has ended.
func (qs *Queues[W]) Granted(name string, w *Waiter[W], h Hold[W], spare int, now time.Time) {
	s := qs.shardOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		if s.handoff < 0 || spare <= 0 {
			return
		}
		q = s.queueOf(name)
	}
	q.recordAnswer()
	q.hasRivals = q.hasRivals && w != nil && w.state == queued
	if q.hasRivals {
		spare = min(spare, q.length-1)
	}
	q.lastHeld, q.othersAhead = nil, 0 // the earlier holder's lease has ended, or this one does not exclude it
	q.removeHold()                     // an earlier hold was lost, but the client has not noticed yet
	// If h is lost, Drop was called already, and will not be called again.
	if s.handoff >= 0 && spare > 0 && !h.Lost() {
		q.hold, q.passesLeft, q.passUntil = h, spare, now.Add(s.handoff)
	}
	if w != nil && w.queue != nil {
		if w.state == asking { // the claim was granted at once, so more may ask together
			q.maxAsking = min(2*q.maxAsking, driver.Unlimited)
		}
		q.unlink(w, left)
	}
	q.advance(now)
	s.removeIfUnused(q)
}

// Pass passes a hold whose lease was released to the first waiter, if that is allowed. If
// it returns false, the caller releases the hold, and the waiter asks the backend.
func (qs *Queues[W]) Pass(name string, h Hold[W], now time.Time) bool {
	s := qs.shardOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil || q.hold != h {
		return false
	}
	w := q.front
	if w == nil || !q.passable(w, now) || !h.Pass(w.Claim) {
		q.endHold(now)
		return false
	}
	q.unlink(w, passed)
	w.wake()
	q.passesLeft--
	if q.passesLeft == 0 {
		q.removeHold() // the next waiter queues in the backend while the last lease is held
	}
	q.advance(now)
	s.removeIfUnused(q)
	return true
}

// Drop removes a hold that can no longer be passed on.
func (qs *Queues[W]) Drop(name string, h Hold[W], now time.Time) {
	s := qs.shardOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[name]; q != nil && q.hold == h {
		q.endHold(now)
	}
}

// Queued returns the claim of the first waiter, if it is in the backend's queue.
func (qs *Queues[W]) Queued(name string) (claim W, ok bool) {
	s := qs.shardOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[name]; q != nil && q.front != nil && q.front.state == queued {
		return q.front.Claim, true
	}
	return claim, false
}

func (s *shard[W]) queueOf(name string) *queue[W] {
	q := s.queues[name]
	if q == nil {
		q, s.idle = s.idle, nil
		if q == nil {
			q = &queue[W]{}
		}
		q.shard, q.name = s, name
		s.queues[name] = q
	}
	return q
}

// removeIfUnused removes a queue without waiters and hold.
func (s *shard[W]) removeIfUnused(q *queue[W]) {
	if q.front == nil && q.hold == nil {
		delete(s.queues, q.name)
		*q = queue[W]{} // a timer that still refers to it compares the hold, which is nil now
		s.idle = q
	}
}
