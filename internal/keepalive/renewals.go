package keepalive

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
)

// Renewals are the leases of a client, however many. They are in a heap by the time at
// which they are due, and leases that are due at about the same time go out as one batch.
//
// A lease is due when it is time to renew it, and again at the end of its term. Only two
// things end it: the backend's answer that the token no longer holds, or the end of the
// term. A request that fails is repeated until then.
type Renewals[L Lease] struct {
	wake       chan struct{} // has room for one
	began      time.Time
	lastAnswer atomic.Int64 // since began: when the backend last answered any request, in nanoseconds

	mu        sync.Mutex // protects all below, and all renewals
	heap      dueHeap[*Renewal[L]]
	dispatch  Dispatch[*Renewal[L]] // the leases that are due, until they are sent
	slept     time.Duration         // how long the machine had slept at the last Due
	alone     int                   // how many leases are Alone
	nextDue   time.Duration         // since began: when Due is called again anyway; 0 if its caller was woken
	scheduled bool                  // something was scheduled since the last Due
	stopped   bool
	emptied   chan struct{} // closed when no lease is left; made by Empty
}

// A Lease is a lease as far as Renewals has to know it.
type Lease interface {
	// Plan describes the lease at that time. It is called under the lock of the
	// renewals: it does not block, and does not call methods of Renewals.
	Plan(now clock.Reading) RenewalPlan
}

// A RenewalPlan describes a lease at some time.
type RenewalPlan struct {
	Left   time.Duration // the rest of its term; at zero the term is over
	TTL    time.Duration // the TTL that a renewal would ask for
	Longer time.Duration // by how much a renewal would extend it, if it is above zero
}

// A Renewal is the state of one lease in Renewals. It is a part of the lease, and begins
// empty.
type Renewal[L Lease] struct {
	Lease L

	// Protected by the lock of the renewals.
	heaped
	ttl    time.Duration
	slack  time.Duration // how much earlier it may be renewed, along with others
	health Health
	fails  uint8
	asking bool          // a renewal is under way, or waits to be sent
	sent   bool          // the renewal is under way: a release waits for its end
	check  bool          // renew the lease even if that does not make it longer
	idle   chan struct{} // closed when no renewal is under way any more; made by Idle

	doubt atomic.Bool // a check was requested, and is not answered yet
}

const (
	heartbeat = time.Second     // how soon a sleep of the machine is noticed
	silentFor = 5 * time.Second // the time without any answer after which the backend seems to be down
)

// NewRenewals makes empty renewals. now is a reading from before the first lease.
func NewRenewals[L Lease](now clock.Reading) *Renewals[L] {
	return &Renewals[L]{wake: make(chan struct{}, 1), began: now.Mono, slept: now.Slept}
}

// Add begins to renew x, which belongs to lease, and whose last request asked for ttl.
// The first renewal is due after `in`, see [RenewIn]. Add returns false after Stop.
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

// Remove ends the renewing of x. A renewal that is under way goes on, and its answer
// changes nothing.
func (r *Renewals[L]) Remove(x *Renewal[L]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.index > 0 {
		r.heap.remove(x)
		r.setHealthLocked(x, Normal)
	}
	r.closeEmptiedLocked()
}

// Stop makes Add refuse new leases, and returns those that are left.
func (r *Renewals[L]) Stop() (left []L) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	for _, x := range r.heap {
		left = append(left, x.item.Lease)
	}
	return left
}

// Stopped reports whether Stop was called.
func (r *Renewals[L]) Stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// Len returns the number of leases.
func (r *Renewals[L]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.heap)
}

// Empty is closed when no lease is left. Call it when no lease is added any more.
func (r *Renewals[L]) Empty() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.emptied == nil {
		r.emptied = make(chan struct{})
	}
	emptied := r.emptied
	r.closeEmptiedLocked()
	return emptied
}

// closeEmptiedLocked closes emptied if no lease is left.
func (r *Renewals[L]) closeEmptiedLocked() {
	if r.emptied != nil && len(r.heap) == 0 {
		close(r.emptied)
		r.emptied = nil
	}
}

// Check makes the client ask the backend at once whether these leases are still held. If
// some is empty, it asks about all leases.
func (r *Renewals[L]) Check(now time.Time, some ...*Renewal[L]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(some) == 0 {
		for _, x := range r.heap { // scheduling reorders the heap
			some = append(some, x.item)
		}
	}
	for _, x := range some {
		if x.index == 0 {
			continue // its lease has ended
		}
		x.check = true
		x.doubt.Store(true)
		if !x.asking { // otherwise Answered schedules it: that answer may be older than the reason for the check
			r.scheduleLocked(x, now, 0)
		}
	}
}

// InDoubt reports whether a check was requested, and is not answered yet.
func (x *Renewal[L]) InDoubt() bool { return x.doubt.Load() }

// Idle is closed when the renewal of x has ended, or nil if no renewal is under way.
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

func (r *Renewals[L]) wakeCaller() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// scheduleLocked sets when x is due, and wakes the caller of Due if it would sleep too
// long.
func (r *Renewals[L]) scheduleLocked(x *Renewal[L], at time.Time, slack time.Duration) {
	due := at.Sub(r.began)
	x.slack, r.scheduled = slack, true
	r.heap.put(x, due)
	// Most leases are released long before they are due, so the caller is woken only if
	// it would sleep too long.
	if r.nextDue != 0 && due < r.nextDue {
		r.nextDue = 0
		r.wakeCaller()
	}
}

// Due queues the leases that have to be renewed now, returns those whose term is over,
// and says when to call it again. After the machine slept, it looks at all leases,
// because the clock that orders the heap stood still.
func (r *Renewals[L]) Due(now clock.Reading) (over []L, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	passed := now.Mono.Sub(r.began)
	if now.Slept > r.slept {
		for i := range r.heap { // equal times keep the order of a heap
			r.heap[i].at = passed
		}
	}
	r.slept = now.Slept
	next = time.Hour // no lease is held: scheduleLocked wakes the caller
	if r.scheduled {
		next = heartbeat // most leases are released before the next Due: none has to wake the caller
	}
	r.scheduled = false
	for len(r.heap) > 0 {
		at, x := r.heap[0].at, r.heap[0].item
		if wait := at - x.slack - passed; wait > 0 {
			// Wake at the latest time that serves the first lease, so that others are due
			// along with it. While any lease is held, read the clocks now and then, to
			// notice that the machine slept.
			next = min(at-passed, heartbeat)
			break
		}
		plan := x.Lease.Plan(now)
		if plan.Left <= 0 {
			r.heap.remove(x)
			r.setHealthLocked(x, Normal)
			over = append(over, x.Lease)
			continue
		}
		// If a renewal is under way, or would not extend the lease, only the end of its
		// term matters.
		if !x.asking && plan.TTL >= driver.MinTTL && (plan.Longer > 0 || x.check) {
			x.asking, x.check = true, false
			r.dispatch.Add(x, x.ttl, x.health)
		}
		x.slack = 0
		r.heap.put(x, passed+plan.Left)
	}
	r.nextDue = passed + next
	return over, next
}

// Take returns leases to send now. The caller must pass each of them to Answered, and
// then their batch to Done; or both to Drop. If there are none, wait is the time until
// there may be; negative means not before Wake.
func (r *Renewals[L]) Take(now time.Time) (leases []*Renewal[L], b *Batch, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if leases, b, wait = r.dispatch.Take(now); b == nil {
			return nil, nil, wait
		}
		leases = slices.DeleteFunc(leases, func(x *Renewal[L]) bool {
			x.sent = x.index > 0
			if !x.sent { // it was released, or lost, while it waited
				x.endLocked()
			}
			return !x.sent
		})
		if len(leases) > 0 {
			return leases, b, 0
		}
		r.dispatch.forget(b)
	}
}

// Drop gives up leases that were not sent, and wakes the callers that wait for the end of
// their renewals.
func (r *Renewals[L]) Drop(leases []*Renewal[L], b *Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dispatch.forget(b)
	for _, x := range leases {
		x.endLocked()
	}
}

// DropRest gives up all renewals that wait to be sent.
func (r *Renewals[L]) DropRest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.dispatch.Rest() {
		x.endLocked()
	}
}

// endLocked notes that no renewal of x is under way any more.
func (x *Renewal[L]) endLocked() {
	x.asking, x.sent = false, false
	if x.idle != nil {
		close(x.idle)
		x.idle = nil
	}
}

// Answered schedules the next renewal of x. left is the rest of its term. unanswered is
// the number of leases of its batch that got no answer; 0 if x got one.
func (r *Renewals[L]) Answered(x *Renewal[L], b *Batch, unanswered int, left time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.endLocked()
	if x.index == 0 {
		return // it was released, or lost, while the answer was under way
	}
	in := RenewIn(x.ttl, now.Sub(b.sent), left)
	if unanswered > 0 {
		x.fails = min(x.fails+1, 200)
		in = min(RetryIn(int(x.fails), x.ttl), left)
		x.check = true // the request has not done what it was sent for
		down := b.sent.Sub(r.began)-time.Duration(r.lastAnswer.Load()) > silentFor
		r.setHealthLocked(x, b.Failed(unanswered, r.alone, down))
	} else {
		x.fails = 0
		r.setHealthLocked(x, Normal)
		if x.check {
			in = 0
		} else {
			x.doubt.Store(false) // the request was sent after the last signal
		}
	}
	r.scheduleLocked(x, now.Add(in), in/16)
}

// Done notes that a batch is no longer under way, and whether it was answered.
func (r *Renewals[L]) Done(b *Batch, now time.Time, answered bool) {
	if answered {
		r.Alive(now)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dispatch.Done(b, now, answered) {
		r.wakeCaller()
	}
}

// Alive notes that the backend answered some other request: then it is worth splitting
// the leases that got no answer.
func (r *Renewals[L]) Alive(now time.Time) {
	if at := int64(now.Sub(r.began)); at-r.lastAnswer.Load() > int64(silentFor/8) { // most requests write nothing
		r.lastAnswer.Store(at)
	}
}

func (r *Renewals[L]) setHealthLocked(x *Renewal[L], h Health) {
	if x.health == Alone {
		r.alone--
	}
	if x.health = h; h == Alone {
		r.alone++
	}
}
