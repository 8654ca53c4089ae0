package keepalive

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// A Return is a lease, or a claim with an unknown outcome, that the client has to
// release. C is the type of the caller's data.
type Return[C any] struct {
	Claim C
	Lease driver.LeaseRef
	TTL   time.Duration // the TTL of the claim

	// Again is the time of another release, because an Acquire of its token may take
	// effect until then. The answer to a release that was sent at Again or later is
	// final.
	Again time.Time
	// Until is the time at which the lease has expired. No release is sent after it.
	Until time.Time

	heaped
	fails int  // the failed releases in a row
	last  bool // its last request was sent
}

// Returns has the returns of one client. New returns are sent at once, up to Most
// requests. Failed returns are sent again a few at a time, or one at a time while no
// release succeeds, with pauses. So a backend that refuses everything gets one request a
// second, however many returns there are. Once it answers, the returns are sent as fast
// as it answers.
type Returns[C any] struct {
	Most int // the largest number of requests under way; 0 means MaxInFlight

	began       time.Time           // the due time of the first return that was postponed
	later       dueHeap[*Return[C]] // not due yet
	fresh       []*Return[C]        // due, and not failed
	failed      []*Return[C]        // due again after a failure
	inFlight    int                 // requests under way
	retrying    int                 // requests under way for returns that failed before
	maxRetrying int                 // the largest number of retrying
	pause       time.Duration
	nextRetry   time.Time // the earliest time of the next retry
	lastRound   bool      // no return is retried any more
	givenUp     int       // how many returns were given up since CountGivenUp
	done        int       // how many requests were answered
}

const (
	// MaxInFlight is the usual largest number of requests under way.
	MaxInFlight = 64

	firstPause = 10 * time.Millisecond
	maxPause   = time.Second // the longest pause
)

func (r *Returns[C]) most() int { return cmp.Or(r.Most, MaxInFlight) }

// Add queues a return that is due now, or after a pause if its first release failed.
func (r *Returns[C]) Add(x *Return[C], now time.Time) {
	if x.fails > 0 && !r.lastRound {
		r.postpone(x, now.Add(firstPause))
		return
	}
	x.fails = 0
	r.fresh = append(r.fresh, x)
}

// AddSent adds a return after its first release. If the backend answered that release, x
// is released again only if an unanswered Acquire may still be granted.
func (r *Returns[C]) AddSent(x *Return[C], now time.Time, answered bool) {
	switch {
	case !answered:
		x.fails = 1
		r.Add(x, now)
	case now.Before(x.Again):
		x.Lease.MinHold = 0 // a lease of a late Acquire needs no minimum hold
		r.postpone(x, x.Again)
	}
}

// Take returns the next return to send now; the caller must pass its outcome to Answered.
// If there is none, wait is the time until Take may return one. A negative wait means:
// after the next Add or Answered.
func (r *Returns[C]) Take(now time.Time) (x *Return[C], wait time.Duration) {
	for len(r.later) > 0 && r.later[0].at <= now.Sub(r.began) {
		x := r.later[0].item
		if r.later.remove(x); x.fails > 0 {
			r.failed = append(r.failed, x)
		} else {
			r.fresh = append(r.fresh, x)
		}
	}
	// A failed return goes first if no other failed return is under way. Otherwise a
	// steady stream of new returns would keep it waiting for ever.
	if x := r.retry(now, 1); x != nil {
		return x, 0
	}
	if r.inFlight < r.most() {
		if x := pop(&r.fresh, now); x != nil {
			r.inFlight++
			x.last = r.lastRound
			return x, 0
		}
	}
	if x := r.retry(now, max(r.maxRetrying, 1)); x != nil {
		return x, 0
	}
	return nil, r.next(now)
}

// retry takes a failed return, if fewer than room failed returns are under way.
func (r *Returns[C]) retry(now time.Time, room int) *Return[C] {
	if r.retrying >= room || r.inFlight >= r.most() || now.Before(r.nextRetry) {
		return nil
	}
	x := pop(&r.failed, now)
	if x != nil {
		r.inFlight++
		r.retrying++
	}
	return x
}

// next returns the time until a return may be due.
func (r *Returns[C]) next(now time.Time) time.Duration {
	wait := time.Duration(-1)
	if len(r.later) > 0 {
		wait = r.later[0].at - now.Sub(r.began)
	}
	if len(r.failed) > 0 && r.inFlight < r.most() && now.Before(r.nextRetry) {
		if rest := r.nextRetry.Sub(now); wait < 0 || rest < wait {
			wait = rest
		}
	}
	return wait
}

// Outcome is the outcome of the request for a return.
type Outcome int

const (
	Done         Outcome = iota // the backend answered that the token holds nothing now
	Failed                      // the outcome is unknown
	Unanswerable                // the backend will never answer it
)

// Answered records the outcome of a return from Take. sent is the time of its request.
func (r *Returns[C]) Answered(x *Return[C], sent, now time.Time, o Outcome) {
	r.inFlight--
	if x.fails > 0 {
		r.retrying--
	}
	switch {
	case o == Done:
		r.done++
		r.maxRetrying, r.pause, r.nextRetry = min(2*max(r.maxRetrying, 1), r.most()), 0, time.Time{}
		x.fails, x.Lease.MinHold = 0, 0 // a lease of a late Acquire needs no minimum hold
		switch {
		case !sent.Before(x.Again):
		case r.lastRound:
			r.givenUp++
		default:
			r.postpone(x, x.Again)
		}
	case o == Unanswerable, x.last:
		r.givenUp++
	default:
		r.failure(x, now)
	}
}

// failure schedules a retry of x, and a pause for all failed returns. The pause grows
// while no release succeeds.
func (r *Returns[C]) failure(x *Return[C], now time.Time) {
	r.maxRetrying = 1
	if x.fails > 0 || r.pause == 0 { // failures of new returns must not prolong the pause
		r.pause = min(max(2*r.pause, firstPause), maxPause)
		r.nextRetry = now.Add(r.pause)
	}
	x.fails++
	r.postpone(x, now.Add(backoff.Doubled(firstPause, x.fails, min(max(x.TTL/20, 2*time.Millisecond), maxPause))))
}

func (r *Returns[C]) postpone(x *Return[C], at time.Time) {
	if r.lastRound {
		x.fails = 0
		r.fresh = append(r.fresh, x)
		return
	}
	if r.began.IsZero() {
		r.began = at
	}
	r.later.put(x, at.Sub(r.began))
}

// CountGivenUp begins to count the returns that are given up.
func (r *Returns[C]) CountGivenUp() { r.givenUp = 0 }

// LastRound makes every return due at once, for the last time. A return that is under way
// is sent once more if its request fails.
func (r *Returns[C]) LastRound() {
	r.lastRound = true
	for _, x := range r.later {
		r.failed = append(r.failed, x.item)
	}
	for _, x := range r.failed {
		x.fails = 0
	}
	r.fresh = append(r.fresh, r.failed...)
	r.later, r.failed = nil, nil
}

// Progress returns the number of answered requests. unanswered reports whether a return
// is under way, or failed and was not answered since.
func (r *Returns[C]) Progress() (done int, unanswered bool) {
	failed := func(x dueItem[*Return[C]]) bool { return x.item.fails > 0 }
	return r.done, r.inFlight > 0 || len(r.failed) > 0 || slices.ContainsFunc(r.later, failed)
}

// Len returns the number of returns, including those under way.
func (r *Returns[C]) Len() int { return len(r.later) + len(r.fresh) + len(r.failed) + r.inFlight }

// Unreleased returns the number of returns without a confirmed release: those in r, and
// those given up since CountGivenUp.
func (r *Returns[C]) Unreleased() int { return r.Len() + r.givenUp }

// pop removes and returns the first return whose lease has not expired, or nil.
func pop[C any](line *[]*Return[C], now time.Time) *Return[C] {
	for len(*line) > 0 {
		x := (*line)[0]
		(*line)[0] = nil
		if *line = (*line)[1:]; now.Before(x.Until) {
			return x
		}
	}
	return nil
}
