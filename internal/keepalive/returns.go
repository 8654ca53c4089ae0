package keepalive

import (
	"container/heap"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// A Return is a lease, or a claim with an unknown outcome, that has to be given back to
// the backend. C is the type of the data that the caller keeps with it.
type Return[C any] struct {
	Claim C
	Lease driver.LeaseRef
	TTL   time.Duration // of the claim

	// Again is the time at which to release it once more, because an Acquire of its token
	// may arrive until then. The answer to a release that was sent at this time or later
	// is final.
	Again time.Time
	// Until is the time at which the lease has ended by itself. No release is sent after
	// it.
	Until time.Time

	at    time.Time // when it is due
	fails int       // the failed releases in a row
	last  bool      // it was sent in the last round
}

// Failed notes that an earlier release of r got no answer.
func (r *Return[C]) Failed() { r.fails = 1 }

// Returns are the returns of one client. New returns go out at once, as far as there is
// room. Returns that failed go out again a few at a time, or one at a time while nothing
// succeeds, with pauses between. So a backend that refuses everything gets one request a
// second, however many returns there are. Once it answers, all go out as fast as it can
// take them.
type Returns[C any] struct {
	mu          sync.Mutex // protects all below
	later       byTime[C]  // not due yet
	fresh       queue[C]   // due, and not failed
	failed      queue[C]   // due again after a failure
	inFlight    int        // requests under way
	retrying    int        // requests under way for returns that failed before
	maxRetrying int        // how many returns that failed may be under way
	pause       time.Duration
	nextRetry   time.Time // when the next return that failed may go
	lastRound   bool      // no return is tried again any more
	givenUp     int       // how many returns were given up since Closing
	done        int       // how many requests were answered
}

const (
	// Out is the largest number of requests under way.
	Out = 64

	firstPause = 10 * time.Millisecond
	maxPause   = time.Second // the longest pause
)

// Add queues a return that is due now.
func (r *Returns[C]) Add(x *Return[C], now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.fails > 0 && !r.lastRound {
		r.postponeLocked(x, now.Add(firstPause))
		return
	}
	x.fails = 0
	r.fresh.push(x)
}

// AddLater queues a return that was released, and is due again at x.Again.
func (r *Returns[C]) AddLater(x *Return[C]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.postponeLocked(x, x.Again)
}

// Take returns the next return to send now; the caller must pass its outcome to Answered.
// If there is none, wait is the time until there may be one; negative means not before
// Add or Answered.
func (r *Returns[C]) Take(now time.Time) (x *Return[C], wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.later) > 0 && !r.later[0].at.After(now) {
		if x := heap.Pop(&r.later).(*Return[C]); x.fails > 0 { //nolint:forcetypeassert // container/heap's signature
			r.failed.push(x)
		} else {
			r.fresh.push(x)
		}
	}
	// A return that failed goes first if no such return is under way. Otherwise a steady
	// stream of new returns would keep it waiting for ever.
	if x := r.retryLocked(now, 1); x != nil {
		return x, 0
	}
	if r.inFlight < Out {
		if x := r.fresh.pop(now); x != nil {
			r.inFlight++
			x.last = r.lastRound
			return x, 0
		}
	}
	if x := r.retryLocked(now, max(r.maxRetrying, 1)); x != nil {
		return x, 0
	}
	return nil, r.nextLocked(now)
}

// retryLocked takes a return that failed, if fewer than room of these are under way.
func (r *Returns[C]) retryLocked(now time.Time, room int) *Return[C] {
	if r.retrying >= room || r.inFlight >= Out || now.Before(r.nextRetry) {
		return nil
	}
	x := r.failed.pop(now)
	if x != nil {
		r.inFlight++
		r.retrying++
	}
	return x
}

// nextLocked returns the time until something may be due.
func (r *Returns[C]) nextLocked(now time.Time) time.Duration {
	wait := time.Duration(-1)
	if len(r.later) > 0 {
		wait = r.later[0].at.Sub(now)
	}
	if r.failed.len() > 0 && r.inFlight < Out && now.Before(r.nextRetry) {
		if rest := r.nextRetry.Sub(now); wait < 0 || rest < wait {
			wait = rest
		}
	}
	return wait
}

// Outcome is the outcome of the request for a return.
type Outcome int

const (
	Done   Outcome = iota // the backend answered that the token holds nothing now
	Failed                // the outcome is unknown
	Never                 // the backend will never answer it
)

// Answered notes the outcome of a return from Take, whose request was sent then.
func (r *Returns[C]) Answered(x *Return[C], sent, now time.Time, o Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight--
	if x.fails > 0 {
		r.retrying--
	}
	switch {
	case o == Done:
		r.done++
		r.maxRetrying, r.pause, r.nextRetry = min(2*max(r.maxRetrying, 1), Out), 0, time.Time{}
		x.fails, x.Lease.MinHold = 0, 0 // a late Acquire is not the lease that had a minimum hold
		switch {
		case !sent.Before(x.Again):
		case r.lastRound:
			r.givenUp++
		default:
			r.postponeLocked(x, x.Again)
		}
	case o == Never, x.last:
		r.givenUp++
	default:
		r.failureLocked(x, now)
	}
}

// failureLocked schedules another try for x, and a pause for all returns that failed. The
// pause grows while no release succeeds.
func (r *Returns[C]) failureLocked(x *Return[C], now time.Time) {
	r.maxRetrying = 1
	if x.fails > 0 || r.pause == 0 { // otherwise failures of new returns would keep the others waiting
		r.pause = min(max(2*r.pause, firstPause), maxPause)
		r.nextRetry = now.Add(r.pause)
	}
	x.fails++
	r.postponeLocked(x, now.Add(backoff.Doubled(firstPause, x.fails, min(max(x.TTL/20, 2*time.Millisecond), maxPause))))
}

// postponeLocked makes x due at that time.
func (r *Returns[C]) postponeLocked(x *Return[C], at time.Time) {
	x.at = at
	if r.lastRound {
		x.fails = 0
		r.fresh.push(x)
		return
	}
	heap.Push(&r.later, x)
}

// Closing begins to count the returns that are given up.
func (r *Returns[C]) Closing() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.givenUp = 0
}

// LastRound makes every return due at once, for the last time. A return that is under way
// goes out once more if that request fails.
func (r *Returns[C]) LastRound() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastRound = true
	for _, x := range r.later {
		x.fails = 0
		r.fresh.push(x)
	}
	r.later = nil
	for r.failed.len() > 0 {
		x := r.failed.pop(time.Time{})
		x.fails = 0
		r.fresh.push(x)
	}
}

// Progress returns how many requests have been answered, and whether a request is under
// way, or has failed and not been answered since.
func (r *Returns[C]) Progress() (done int, unanswered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	failed := func(x *Return[C]) bool { return x.fails > 0 }
	return r.done, r.inFlight > 0 || r.failed.len() > 0 || slices.ContainsFunc(r.later, failed)
}

// Len returns the number of returns, including those under way.
func (r *Returns[C]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.later) + r.fresh.len() + r.failed.len() + r.inFlight
}

// Left returns the number of returns that are not known to be released: those still
// there, and those given up since Closing.
func (r *Returns[C]) Left() int {
	n := r.Len()
	r.mu.Lock()
	defer r.mu.Unlock()
	return n + r.givenUp
}

// byTime is a heap; these are the five methods of container/heap.
type byTime[C any] []*Return[C]

func (h byTime[C]) Len() int           { return len(h) }
func (h byTime[C]) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h byTime[C]) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byTime[C]) Push(x any)        { *h = append(*h, x.(*Return[C])) } //nolint:forcetypeassert // container/heap's signature

func (h *byTime[C]) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}

// queue is first in, first out.
type queue[C any] struct {
	items []*Return[C]
	head  int
}

func (q *queue[C]) len() int { return len(q.items) - q.head }

func (q *queue[C]) push(x *Return[C]) {
	if q.head > 1024 && q.head > len(q.items)/2 { // otherwise a queue that is never empty would grow for ever
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.head = 0
	}
	q.items = append(q.items, x)
}

// pop takes the first return that has not ended by itself, if there is one.
func (q *queue[C]) pop(now time.Time) *Return[C] {
	for q.head < len(q.items) {
		x := q.items[q.head]
		q.items[q.head] = nil
		if q.head++; q.head == len(q.items) {
			q.items, q.head = q.items[:0], 0
		}
		if now.Before(x.Until) {
			return x
		}
	}
	return nil
}
