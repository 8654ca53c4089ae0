package keepalive

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
)

// Renewals has the held leases of a client, in a heap ordered by the times at which they
// are due. Leases that are due at about the same time are sent as one batch.
//
// A lease is due when it is time to renew it, and again at the end of its term. Only the
// end of its term, or the backend's answer that the token holds no lease, ends the lease.
// A failed request is repeated until then.
type Renewals[L Lease] struct {
	wake       chan struct{} // capacity 1
	began      time.Time
	lastAnswer atomic.Int64 // the time of the backend's last answer, in nanoseconds since began

	mu        sync.Mutex // protects the fields below, and all renewals
	heap      dueHeap[L]
	dispatch  Dispatch[*Renewal[L]] // the leases that are due, until they are sent
	slept     time.Duration         // clock.Reading.Slept at the last call of Due
	sentAlone int                   // the number of leases with the health SentAlone
	nextDue   time.Duration         // the time of the next call of Due, since began; 0 if its caller was woken
	scheduled bool                  // a renewal was scheduled since the last Due
	stopped   bool
	emptied   chan struct{} // closed when no lease is left; made by Empty
}

// A Lease is the part of a lease that Renewals needs.
type Lease interface {
	// Plan describes the lease at that time. Renewals calls it with its mutex locked, so
	// Plan must not block, and must not call methods of Renewals.
	Plan(now clock.Reading) RenewalPlan
}

// A RenewalPlan describes a lease at some time.
type RenewalPlan struct {
	Left      time.Duration // the rest of its term; at zero the term is over
	TTL       time.Duration // the TTL that a renewal would ask for
	Extension time.Duration // the time by which a renewal would extend the lease; 0 or less if it would not
}

// A Renewal is the state of one lease in Renewals. The lease contains it. The zero value
// is ready.
type Renewal[L Lease] struct {
	Lease L

	// Protected by Renewals.mu.
	index     int32 // its index in the heap, from 1; 0 if it is not in the heap
	ttl       time.Duration
	slack     time.Duration // the time by which it may be renewed earlier, together with others
	health    Health
	failures  uint8
	pending   bool          // a renewal is queued or under way
	underWay  bool          // a renewal is under way; Idle waits for its end
	mustCheck bool          // renew the lease even if that does not extend it
	idle      chan struct{} // closed when the renewal under way has ended; made by Idle

	inDoubt atomic.Bool // a check was requested, and is not answered yet
}

const (
	heartbeat      = time.Second     // Due checks at this interval whether the machine slept
	silenceTimeout = 5 * time.Second // without any answer for this time, the backend seems to be down
)

// NewRenewals returns Renewals without leases. now is a reading from before the first
// lease.
func NewRenewals[L Lease](now clock.Reading) *Renewals[L] {
	return &Renewals[L]{wake: make(chan struct{}, 1), began: now.Mono, slept: now.Slept}
}

// Add adds lease, whose state is x. ttl is the TTL of the request that granted it. The
// first renewal is due after in, see [RenewIn]. Add returns false after Stop.
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

// Remove removes the lease of x. The answer to a renewal under way has no effect.
func (r *Renewals[L]) Remove(x *Renewal[L]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.index > 0 {
		r.heap.remove(x)
		r.setHealthLocked(x, Normal)
	}
	r.closeEmptiedLocked()
}

// Stop makes Add refuse new leases, and returns the remaining leases.
func (r *Renewals[L]) Stop() (left []L) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	for _, x := range r.heap {
		left = append(left, x.item.Lease)
	}
	return left
}

// Len returns the number of leases.
func (r *Renewals[L]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.heap)
}

// Empty returns a channel that is closed when no lease is left. Call it when no lease is
// added any more.
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
		for _, x := range r.heap { // copy the heap, because scheduling reorders it
			some = append(some, x.item)
		}
	}
	for _, x := range some {
		if x.index == 0 {
			continue // its lease has ended
		}
		x.mustCheck = true
		x.inDoubt.Store(true)
		if !x.pending { // if a request is under way, ScheduleNext plans the check: its answer may be outdated
			r.scheduleLocked(x, now, 0)
		}
	}
}

// InDoubt reports whether a check was requested, and is not answered yet.
func (x *Renewal[L]) InDoubt() bool { return x.inDoubt.Load() }

// Idle returns a channel that is closed when the renewal of x has ended, or nil if none
// is under way.
func (r *Renewals[L]) Idle(x *Renewal[L]) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !x.underWay {
		return nil
	}
	if x.idle == nil {
		x.idle = make(chan struct{})
	}
	return x.idle
}

// Wake returns a channel that receives a value when Due or Take may have work before the
// time that its last call returned.
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

// Due queues the leases that have to be renewed now. It returns the leases whose term is
// over, and the time until its next call. After the machine slept, it checks all leases,
// because the clock of the heap stood still meanwhile.
func (r *Renewals[L]) Due(now clock.Reading) (ended []L, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	passed := now.Mono.Sub(r.began)
	if now.Slept > r.slept {
		for i := range r.heap { // items with equal times form a valid heap
			r.heap[i].at = passed
		}
	}
	r.slept = now.Slept
	next = time.Hour // without leases nothing is due, and scheduleLocked wakes the caller for a new lease
	if r.scheduled {
		next = heartbeat // new leases then need not wake the caller, and most are released earlier
	}
	r.scheduled = false
	for len(r.heap) > 0 {
		at, x := r.heap[0].at, r.heap[0].item
		if wait := at - x.slack - passed; wait > 0 {
			// Sleep as long as the first lease allows, so that others are due along with
			// it. While any lease is held, read the clocks now and then, to notice that
			// the machine slept.
			next = min(at-passed, heartbeat)
			break
		}
		plan := x.Lease.Plan(now)
		if plan.Left <= 0 {
			r.heap.remove(x)
			r.setHealthLocked(x, Normal)
			ended = append(ended, x.Lease)
			continue
		}
		// If a renewal is under way, or would not extend the lease, only the end of its
		// term matters.
		if !x.pending && plan.TTL >= driver.MinTTL && (plan.Extension > 0 || x.mustCheck) {
			x.pending, x.mustCheck = true, false
			r.dispatch.Add(x, x.ttl, x.health)
		}
		x.slack = 0
		r.heap.put(x, passed+plan.Left)
	}
	r.nextDue = passed + next
	return ended, next
}

// Take returns leases to send now. The caller must pass each of them to ScheduleNext, and
// then their batch to Done. If there are none, wait is the time until Take may return
// some. A negative wait means: wait for Wake.
func (r *Renewals[L]) Take(now time.Time) (leases []*Renewal[L], b *Batch, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if leases, b, wait = r.dispatch.Take(now); b == nil {
			return nil, nil, wait
		}
		leases = slices.DeleteFunc(leases, func(x *Renewal[L]) bool {
			x.underWay = x.index > 0
			if !x.underWay { // the lease was released or lost before it was sent
				x.endRenewalLocked()
			}
			return !x.underWay
		})
		if len(leases) > 0 {
			return leases, b, 0
		}
		r.dispatch.remove(b)
	}
}

func (x *Renewal[L]) endRenewalLocked() {
	x.pending, x.underWay = false, false
	if x.idle != nil {
		close(x.idle)
		x.idle = nil
	}
}

// ScheduleNext schedules the next renewal of x. left is the rest of its term. failed is 0
// if x was renewed, 1 if its answer is an error, the batch's size if the request failed.
func (r *Renewals[L]) ScheduleNext(x *Renewal[L], b *Batch, failed int, left time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.endRenewalLocked()
	if x.index == 0 {
		return // the lease was released or lost meanwhile
	}
	in := RenewIn(x.ttl, now.Sub(b.sent), left)
	if failed > 0 {
		x.failures = min(x.failures+1, 200)
		in = min(RetryIn(int(x.failures), x.ttl), left)
		x.mustCheck = true // the failed request may have been a check
		down := b.sent.Sub(r.began)-time.Duration(r.lastAnswer.Load()) > silenceTimeout
		r.setHealthLocked(x, b.HealthAfterFailure(failed, r.sentAlone, down))
	} else {
		x.failures = 0
		r.setHealthLocked(x, Normal)
		if x.mustCheck {
			in = 0
		} else {
			x.inDoubt.Store(false) // the request was sent after the last call of Check
		}
	}
	r.scheduleLocked(x, now.Add(in), in/16)
}

// Done ends a batch.
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

// Alive reports to r that the backend answered another request. Then leases without an
// answer may be sent alone, see Batch.HealthAfterFailure.
func (r *Renewals[L]) Alive(now time.Time) {
	if at := int64(now.Sub(r.began)); at-r.lastAnswer.Load() > int64(silenceTimeout/8) { // most calls write nothing
		r.lastAnswer.Store(at)
	}
}

func (r *Renewals[L]) setHealthLocked(x *Renewal[L], h Health) {
	if x.health == SentAlone {
		r.sentAlone--
	}
	if x.health = h; h == SentAlone {
		r.sentAlone++
	}
}
