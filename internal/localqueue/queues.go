package localqueue

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A Hold is an exclusive hold of a name in the backend, from which several leases can be
// made, one after the other. Its methods are called under the lock of the queue: they do
// not block, and do not come back here.
type Hold[W any] interface {
	// Alike reports whether a lease of this hold would serve the claim as well as one of
	// its own: nobody could tell them apart.
	Alike(claim W) bool
	// Pass makes the next lease of the hold, whose last one was released, and leaves it
	// in the claim. It answers false if the hold is not good for that.
	Pass(claim W) bool
	// Lost reports whether the hold has ended without a release.
	Lost() bool
}

// Names have nothing to do with each other, so their queues stand in several shards with
// a mutex each: goroutines on names of their own would otherwise spend more time on our
// mutex than on their locks.
const shards = 16

// Queues are the queues of all names. W is what the caller keeps with a waiter.
type Queues[W any] struct {
	seed  maphash.Seed
	shard [shards]struct {
		shard[W]
		_ [64]byte // keeps neighbours out of each other's cache line
	}
}

// A shard is the queues of some names.
type shard[W any] struct {
	start   time.Time
	handoff time.Duration
	after   func(d time.Duration, f func()) (stop func() bool)

	mu     sync.Mutex // protects all below, and the queues and waiters
	queues map[string]*queue[W]
	idle   *queue[W]   // one that is not used, for the next name: one comes and goes with each lock
	open   []window[W] // the holds that can be passed on, or could, in the order of their closing
	looked int         // how many waiters were looked at in loops, for the tests
}

// A window is the time in which a hold may be passed on. It is open while the queue has
// the hold.
type window[W any] struct {
	queue *queue[W]
	hold  Hold[W]
}

// New makes the queues of a process, from now on, in which holds may be passed on for a
// time after their grant; never, if it is negative. after calls f when a time has passed,
// unless it is stopped, as time.AfterFunc does.
func New[W any](
	now time.Time, handoff time.Duration, after func(d time.Duration, f func()) (stop func() bool),
) *Queues[W] {
	q := &Queues[W]{seed: maphash.MakeSeed()}
	for i := range q.shard {
		q.shard[i].shard = shard[W]{
			start: now, handoff: handoff, after: after, queues: map[string]*queue[W]{},
		}
	}
	return q
}

func (q *Queues[W]) of(name string) *shard[W] {
	return &q.shard[maphash.String(q.seed, name)%shards].shard
}

// Names is how many names have a queue.
func (q *Queues[W]) Names() int {
	n := 0
	for i := range q.shard {
		s := &q.shard[i].shard
		s.mu.Lock()
		n += len(s.queues)
		s.mu.Unlock()
	}
	return n
}

// Enter puts w, which is the claim's, at the end of the queue of c's name. Of c it looks
// at that, the weight and the limit.
func (q *Queues[W]) Enter(w *Waiter[W], c *driver.Claim, claim W, now time.Time) {
	s := q.of(c.Name)
	w.Claim, w.shard, w.weight, w.limit = claim, s, int32(c.Weight), int32(c.Limit)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at(c.Name)
	if x.front == nil {
		x.last, x.others, x.rivals = nil, 0, false // whatever was heard before is old
		x.answered()
	}
	x.push(w)
	x.advance(now)
	if w.state == local {
		w.turn, w.came = make(chan struct{}), now.Sub(s.start)
	}
}

// Tried says what stands in the way of a try here already: anybody who waits, but for
// those who ask and could stand beside it. It does not ask the backend.
func (q *Queues[W]) Tried(c *driver.Claim) error {
	s := q.of(c.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.queues[c.Name]
	if x == nil || x.front == nil {
		return nil
	}
	if x.failure != nil {
		return x.failure // nobody knows whether it is held
	}
	// An exclusive claim asks alone, so it is the first if it is one of those who ask.
	if c.Weight != driver.Exclusive && x.queued == 0 && x.local == nil && x.front.weight != driver.Exclusive {
		return nil
	}
	held := &driver.HeldError{Name: c.Name}
	if x.last != nil {
		held.Holders, held.Holder = x.last.Holders, x.last.Holder
	}
	held.Local = held.Holders == 0
	return held
}

// Granted takes w, which the backend has granted its claim, out of the queue; w is nil
// for a try, which never stood in it. From now on h, if it is exclusive, may be passed on
// spare times. If w had to wait for other processes, they may be waiting again: then h
// goes back to them when it has been passed to as many as wait now, and does not go round
// among those who come back. What was granted before is not ours any more.
func (q *Queues[W]) Granted(name string, w *Waiter[W], h Hold[W], spare int, now time.Time) {
	s := q.of(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	x := s.queues[name]
	if x == nil {
		if s.handoff < 0 || spare <= 0 {
			return
		}
		x = s.at(name)
	}
	x.answered()
	x.rivals = x.rivals && w != nil && w.state == queued
	if x.rivals {
		spare = min(spare, x.length-1)
	}
	// If it is lost, Drop has looked here already, and would not look again.
	opens := s.handoff >= 0 && spare > 0 && !h.Lost()
	x.last, x.others = nil, 0 // whoever held it does not hold it any more, or beside us
	x.shut()                  // of a hold that was taken from us, and that nobody here knows to be lost yet
	if opens {
		x.hold, x.spare, x.closes = h, spare, now.Add(s.handoff)
		s.open = append(s.open, window[W]{x, h})
	}
	if w != nil && w.queue != nil {
		x.unlink(w, left)
	}
	x.advance(now)
	s.tidy(x)
}

// Pass hands a hold whose lease was released to the first waiter, if that is allowed.
// Otherwise the hold goes back to the backend, and the waiter asks there.
func (q *Queues[W]) Pass(name string, h Hold[W], now time.Time) bool {
	s := q.of(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.queues[name]
	if x == nil || x.hold != h {
		return false
	}
	w := x.front
	if w == nil || !x.passable(w, now) || !h.Pass(w.Claim) {
		x.end(now)
		return false
	}
	x.unlink(w, passed)
	w.wake()
	x.spare--
	if x.spare == 0 {
		x.shut() // so the next one asks, and queues in the backend while the last lease is held
	}
	x.advance(now)
	s.tidy(x)
	return true
}

// Drop forgets a hold that can be passed on no more.
func (q *Queues[W]) Drop(name string, h Hold[W], now time.Time) {
	s := q.of(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.queues[name]; x != nil && x.hold == h {
		x.end(now)
	}
}

// Queued is the claim of the first waiter that stands in the backend's queue.
func (q *Queues[W]) Queued(name string) (claim W, ok bool) {
	s := q.of(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.queues[name]; x != nil && x.front != nil && x.front.state == queued {
		return x.front.Claim, true
	}
	return claim, false
}

func (s *shard[W]) at(name string) *queue[W] {
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

// sweep forgets holds whose time to be passed on is over, so that a lease that is held
// for long costs no queue.
func (s *shard[W]) sweep(now time.Time) {
	for len(s.open) > 0 {
		if q := s.open[0].queue; q.hold == s.open[0].hold {
			if now.Before(q.closes) {
				return
			}
			q.end(now)
		}
		s.open[0] = window[W]{}
		s.open = s.open[1:]
	}
}

// tidy forgets a queue that nobody needs.
func (s *shard[W]) tidy(q *queue[W]) {
	if q.front == nil && q.hold == nil {
		delete(s.queues, q.name)
		*q = queue[W]{} // a window or timer that still knows it knows a hold, too, which it has not
		s.idle = q
	}
}
