package keepalive

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
)

// Renewals are the leases of a client, however many: they stand in a heap by the time at
// which something is due, and what is due at about the same time goes out as one batch.
//
// A lease is due when it is time to renew it, and again at the end of its term. Only two
// things end it: the backend's word that the token no longer holds, or the end of the
// term. A request that fails is repeated until then.
type Renewals[L Lease] struct {
	wake     chan struct{}         // holds one
	dispatch Dispatch[*Renewal[L]] // what is due, until it is sent; their terms may end meanwhile
	alarm    atomic.Bool           // failing is not 0; read without the mutex
	began    time.Time

	mu      sync.Mutex // protects all below, and all renewals
	heap    byDue[L]
	slept   time.Duration // how long the machine had slept when Due looked last
	failing int           // how many of them were not answered the last time
	split   int           // and how many of those are in small batches
	armed   time.Duration // since began: when Due will be called again anyway; 0 while nobody sleeps until then
	used    bool          // something was scheduled since Due looked last
	stopped bool
	emptied chan struct{} // closed when nothing is held; made by who waits for that
}

// A Lease is what is renewed, as far as that has to be known here.
type Lease interface {
	// Outlook says what can be said of it at that time. It is called under the lock of
	// the renewals: it does not block, and does not come back here.
	Outlook(now clock.Reading) Outlook
}

// An Outlook is what can be said of a lease at some time.
type Outlook struct {
	Left   time.Duration // of its term: at zero it is over
	TTL    time.Duration // that a renewal would ask for
	Longer time.Duration // by how much that would make it last longer, if it is above zero
}

// A Renewal is what is known here of one lease. It is a part of the lease, and begins
// empty.
type Renewal[L Lease] struct {
	Lease L

	// Protected by the lock of the renewals.
	ttl    time.Duration
	at     time.Duration // since Renewals.began: when it is due
	slack  time.Duration // how much earlier it may go along with others
	index  int32         // in the heap, from 1; 0 if it is not in it
	health Health
	fails  uint8
	asking bool          // a renewal is under way, or stands in line for a slot
	sent   bool          // it is under way: who releases it waits for that
	check  bool          // ask, whether or not that makes the lease longer
	idle   chan struct{} // closed when none is under way any more; made by who waits for that

	doubt atomic.Bool // a check was asked for, and not answered yet
}

const heartbeat = time.Second // how soon it is noticed that the machine slept

// NewRenewals makes them, with a reading from before the first lease.
func NewRenewals[L Lease](now clock.Reading) *Renewals[L] {
	return &Renewals[L]{wake: make(chan struct{}, 1), began: now.Mono, slept: now.Slept}
}

// Add begins to renew x, which is lease's and asked for with ttl, for the first time in
// that long: see [RenewIn]. It answers false after Stop.
func (r *Renewals[L]) Add(x *Renewal[L], lease L, ttl, in time.Duration, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return false
	}
	x.Lease, x.ttl = lease, ttl
	r.scheduleLocked(x, now.Add(in), in/16)
	return true
}

// Remove ends the renewing of x. A renewal that is under way goes on, and changes
// nothing.
func (r *Renewals[L]) Remove(x *Renewal[L]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.index > 0 {
		r.heap.remove(x)
		r.feelsLocked(x, Health{})
	}
	r.tellEmptyLocked()
}

// Stop ends the taking of new leases, and returns those that are left.
func (r *Renewals[L]) Stop() (left []L) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	for _, x := range r.heap {
		left = append(left, x.Lease)
	}
	return left
}

// Stopped reports whether Stop was called.
func (r *Renewals[L]) Stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// Len is how many leases there are.
func (r *Renewals[L]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.heap)
}

// Empty is closed when no lease is left. It is asked for when none is added any more.
func (r *Renewals[L]) Empty() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.emptied == nil {
		r.emptied = make(chan struct{})
	}
	emptied := r.emptied
	r.tellEmptyLocked()
	return emptied
}

// tellEmptyLocked tells who waits for it if nothing is held.
func (r *Renewals[L]) tellEmptyLocked() {
	if r.emptied != nil && len(r.heap) == 0 {
		close(r.emptied)
		r.emptied = nil
	}
}

// Check has the backend asked at once whether leases are still held; none means all of
// them.
func (r *Renewals[L]) Check(now time.Time, some ...*Renewal[L]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(some) == 0 {
		some = slices.Clone(r.heap) // scheduling moves them about
	}
	for _, x := range some {
		if x.index == 0 {
			continue // it is over
		}
		x.check = true
		x.doubt.Store(true)
		if !x.asking { // else it asks again after the answer, which may be older than what is to be checked
			r.scheduleLocked(x, now, 0)
		}
	}
}

// InDoubt reports whether a check was asked for, and not answered yet.
func (x *Renewal[L]) InDoubt() bool { return x.doubt.Load() }

// Idle is closed when no renewal of x is under way any more; nil if none is.
func (r *Renewals[L]) Idle(x *Renewal[L]) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !x.sent {
		return nil
	}
	if x.idle == nil {
		x.idle = make(chan struct{})
	}
	return x.idle
}

// Wake is readable when there may be something to do sooner than Due and Take have said.
func (r *Renewals[L]) Wake() <-chan struct{} { return r.wake }

func (r *Renewals[L]) look() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// scheduleLocked sets when x is due, and sees to it that somebody looks in time.
func (r *Renewals[L]) scheduleLocked(x *Renewal[L], at time.Time, slack time.Duration) {
	x.at, x.slack, r.used = at.Sub(r.began), slack, true
	r.heap.put(x)
	// Most leases are released long before anything is due: nobody is woken who would not
	// sleep too long.
	if r.armed != 0 && x.at < r.armed {
		r.armed = 0
		r.look()
	}
}

// Due puts in line what is to be renewed now, returns those whose term is over, and says
// when to look again. After the machine slept, everything is looked at: the heap is in
// the order of a clock that stood still.
func (r *Renewals[L]) Due(now clock.Reading) (over []L, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	passed := now.Mono.Sub(r.began)
	if now.Slept > r.slept {
		r.heap.all(passed)
	}
	r.slept = now.Slept
	next = time.Hour // nothing is held: schedule wakes us
	if r.used {
		next = heartbeat // mostly it is released before we look, and soon there is another: none of them has to wake us
	}
	r.used = false
	for len(r.heap) > 0 {
		x := r.heap[0]
		if wait := x.at - x.slack - passed; wait > 0 {
			// Wake at the latest time that serves the first, for others to be due along
			// with it. While anything is held, look at the clocks now and then, to notice
			// that the machine slept.
			next = min(x.at-passed, heartbeat)
			break
		}
		o := x.Lease.Outlook(now)
		if o.Left <= 0 {
			r.heap.remove(x)
			r.feelsLocked(x, Health{})
			over = append(over, x.Lease)
			continue
		}
		// What is under way, or held for as long as it may be, has only to be ended in
		// time.
		if !x.asking && o.TTL >= driver.MinTTL && (o.Longer > 0 || x.check) {
			x.asking, x.check = true, false
			r.dispatch.Add(x, x.ttl, x.health)
		}
		x.at, x.slack = passed+o.Left, 0
		r.heap.put(x)
	}
	r.armed = passed + next
	return over, next
}

// Take returns a batch that is to be sent now: each of them is told to Answered, and then
// the flight to Landed; or all of it to Drop. If there is none it says how long it is
// until there may be one; negative is not before Wake.
func (r *Renewals[L]) Take(now time.Time) (batch []*Renewal[L], f *Flight, wait time.Duration) {
	for {
		if batch, f, wait = r.dispatch.Take(now); f == nil {
			return nil, nil, wait
		}
		if batch = r.departing(batch); len(batch) > 0 {
			return batch, f, 0
		}
		_ = r.dispatch.Landed(f, time.Time{}, false)
	}
}

// departing are those of a batch that were not released or lost while they stood in line.
func (r *Renewals[L]) departing(batch []*Renewal[L]) []*Renewal[L] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(batch, func(x *Renewal[L]) bool {
		if x.sent = x.index > 0; !x.sent {
			x.landedLocked()
		}
		return !x.sent
	})
}

// Drop gives up a batch that was not sent. Who waits for one of them need not wait any
// more.
func (r *Renewals[L]) Drop(batch []*Renewal[L], f *Flight) {
	_ = r.dispatch.Landed(f, time.Time{}, false)
	r.drop(batch)
}

// DropRest gives up all that stand in line.
func (r *Renewals[L]) DropRest() { r.drop(r.dispatch.Rest()) }

func (r *Renewals[L]) drop(batch []*Renewal[L]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range batch {
		x.landedLocked()
	}
}

// landedLocked notes that no renewal is under way any more.
func (x *Renewal[L]) landedLocked() {
	x.asking, x.sent = false, false
	if x.idle != nil {
		close(x.idle)
		x.idle = nil
	}
}

// Answered schedules what comes next for x, of whose term left is to come. unanswered is
// how many of its batch were not answered; 0 if x was.
func (r *Renewals[L]) Answered(x *Renewal[L], f *Flight, unanswered int, left time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.landedLocked()
	if x.index == 0 {
		return // it was released, or lost, while the answer was under way
	}
	in := RenewIn(x.ttl, now.Sub(f.sent), left)
	if unanswered > 0 {
		x.fails = min(x.fails+1, 200)
		in = min(RetryIn(int(x.fails), x.ttl), left)
		x.check = true // whatever it was sent for has not been done
		r.feelsLocked(x, r.dispatch.Failed(f, unanswered, r.split, x.health))
	} else {
		x.fails = 0
		r.feelsLocked(x, Health{})
		if x.check {
			in = 0
		} else {
			x.doubt.Store(false) // what was asked was sent after the last signal
		}
	}
	r.scheduleLocked(x, now.Add(in), in/16)
}

// Landed notes that a batch is under way no more, and whether it was answered.
func (r *Renewals[L]) Landed(f *Flight, now time.Time, answered bool) {
	if r.dispatch.Landed(f, now, answered) {
		r.look()
	}
}

// Alive notes that the backend answered something else: then those that it does not
// answer are worth asking for one by one.
func (r *Renewals[L]) Alive(now time.Time) {
	if r.alarm.Load() {
		r.dispatch.Alive(now)
	}
}

func (r *Renewals[L]) feelsLocked(x *Renewal[L], h Health) {
	was := x.health
	if was == h {
		return
	}
	x.health = h
	r.failing += count(!h.OK()) - count(!was.OK())
	r.split += count(h.Split()) - count(was.Split())
	r.alarm.Store(r.failing > 0)
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
