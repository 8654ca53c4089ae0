package keepalive

import (
	"container/heap"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// A Return is a lease, or a claim of which nobody knows what became of it, that has to be
// given back to the backend. C is what the caller keeps with it.
type Return[C any] struct {
	Claim C
	Lease driver.LeaseRef
	TTL   time.Duration // of the claim

	// Again is when it is released once more, because an Acquire of its token may arrive
	// until then. An answer to a release that was sent at this time or later is the last
	// word.
	Again time.Time
	// Until is when whatever there is has ended by itself. It is not sent after that.
	Until time.Time

	at    time.Time // when it is due
	fails int       // in a row
}

// Failed notes that a release of it was sent already, and not answered.
func (r *Return[C]) Failed() { r.fails = 1 }

// Returns are those of one client. What was not tried yet goes out at once, as far as
// there is room. What failed is tried again by only a few at a time, one while nothing
// succeeds, with pauses between: a backend that refuses everything is asked once a
// second, however much there is to return, and once it answers all goes out as fast as it
// can take it.
type Returns[C any] struct {
	mu     sync.Mutex // protects all below
	later  byTime[C]  // not due yet
	fresh  queue[C]   // due, and not failed
	failed queue[C]   // due again after a failure
	out    int        // under way
	again  int        // of these, those that had failed before
	room   int        // how many of those that failed may be under way
	pause  time.Duration
	rest   time.Time // when the next of those that failed may go
	last   bool      // nothing is tried again any more
	left   int       // how many were given up since Closing
}

const (
	// Out is how many requests are under way at most.
	Out = 64

	firstPause = 10 * time.Millisecond
	longest    = time.Second // pause
)

// Add puts one in that is due now.
func (r *Returns[C]) Add(x *Return[C], now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.fails > 0 && !r.last {
		r.postponeLocked(x, now.Add(firstPause))
		return
	}
	x.fails = 0
	r.fresh.push(x)
}

// AddLater puts one in that was released, and is only due when it has to be released
// again.
func (r *Returns[C]) AddLater(x *Return[C]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.postponeLocked(x, x.Again)
}

// Take returns the next that is to be sent now: its outcome is told to Answered. If there
// is none it says how long it is until there may be one; negative means not before
// something is added or answered.
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
	// One of those that failed comes first if none of them is under way: else those that
	// are new, if there were always some, would keep them waiting for ever.
	if x := r.retryLocked(now, 1); x != nil {
		return x, 0
	}
	if r.out < Out {
		if x := r.fresh.pop(now); x != nil {
			r.out++
			return x, 0
		}
	}
	if x := r.retryLocked(now, max(r.room, 1)); x != nil {
		return x, 0
	}
	return nil, r.nextLocked(now)
}

// retryLocked takes one of those that failed, if fewer than room are under way.
func (r *Returns[C]) retryLocked(now time.Time, room int) *Return[C] {
	if r.again >= room || r.out >= Out || now.Before(r.rest) {
		return nil
	}
	x := r.failed.pop(now)
	if x != nil {
		r.out++
		r.again++
	}
	return x
}

// nextLocked is how long it is until something may be due.
func (r *Returns[C]) nextLocked(now time.Time) time.Duration {
	wait := time.Duration(-1)
	if len(r.later) > 0 {
		wait = r.later[0].at.Sub(now)
	}
	if r.failed.len() > 0 && r.out < Out && now.Before(r.rest) {
		if rest := r.rest.Sub(now); wait < 0 || rest < wait {
			wait = rest
		}
	}
	return wait
}

// Outcome is how a release that was taken ended.
type Outcome int

const (
	Done   Outcome = iota // the backend answered that the token holds nothing now
	Failed                // nobody knows
	Never                 // it will never be answered
)

// Answered notes the outcome of one that was taken, and sent then.
func (r *Returns[C]) Answered(x *Return[C], sent, now time.Time, o Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out--
	if x.fails > 0 {
		r.again--
	}
	switch {
	case o == Done:
		r.room, r.pause, r.rest = min(2*max(r.room, 1), Out), 0, time.Time{}
		x.fails, x.Lease.MinHold = 0, 0 // what may come yet is not what was to be kept
		switch {
		case !sent.Before(x.Again):
		case r.last:
			r.left++
		default:
			r.postponeLocked(x, x.Again)
		}
	case o == Never, r.last:
		r.left++
	default:
		r.failureLocked(x, now)
	}
}

// failureLocked has x tried again, and all that failed wait a little: longer each time
// that nothing succeeded between.
func (r *Returns[C]) failureLocked(x *Return[C], now time.Time) {
	r.room = 1
	if x.fails > 0 || r.pause == 0 { // else what is new would keep the others waiting
		r.pause = min(max(2*r.pause, firstPause), longest)
		r.rest = now.Add(r.pause)
	}
	x.fails++
	r.postponeLocked(x, now.Add(backoff.Doubled(firstPause, x.fails, min(max(x.TTL/20, 2*time.Millisecond), longest))))
}

// postponeLocked has x due later.
func (r *Returns[C]) postponeLocked(x *Return[C], at time.Time) {
	x.at = at
	if r.last {
		x.fails = 0
		r.fresh.push(x)
		return
	}
	heap.Push(&r.later, x)
}

// Closing begins to count what is given up.
func (r *Returns[C]) Closing() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = 0
}

// LastRound has everything sent once more, at once, and nothing again after that.
func (r *Returns[C]) LastRound() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = true
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

// Len is how many there are, those under way included.
func (r *Returns[C]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.later) + r.fresh.len() + r.failed.len() + r.out
}

// Left is how many of them are not known to be released: there still, or given up since
// Closing.
func (r *Returns[C]) Left() int {
	n := r.Len()
	r.mu.Lock()
	defer r.mu.Unlock()
	return n + r.left
}

// byTime is a heap: container/heap's five methods.
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
	if q.head > 1024 && q.head > len(q.items)/2 { // else one that is never empty would grow for ever
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.head = 0
	}
	q.items = append(q.items, x)
}

// pop takes the first that has not ended by itself, if there is one.
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
