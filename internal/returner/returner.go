// Package returner releases leases and claims in the background: for a client, and for
// one node of a quorum.
package returner

import (
	"context"
	"slices"
	"sync"
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

	// ReleaseAgainAt is the time of another release, because an Acquire of its token may
	// take effect until then. The answer to a release that was sent then or later is
	// final.
	ReleaseAgainAt time.Time
	// Until is the time at which the lease has expired. No release is sent after it.
	Until time.Time

	due             time.Time // the time of its next request, if it is in Returner.scheduled
	failures        int       // failed releases in a row
	sentInLastRound bool      // its request was sent in the last round
}

// A Request releases x once. Its error is for Abandon, and is nil with the outcome Done.
type Request[C any] func(ctx context.Context, x *Return[C], sent time.Time) (Outcome, error)

// Outcome is the outcome of the request for a return.
type Outcome int

const (
	Done         Outcome = iota // the backend answered that the token holds nothing now
	Failed                      // the outcome is unknown
	Unanswerable                // the backend will never answer it
)

// A Returner sends the requests of returns. It has one timer, and one goroutine for each
// request under way. New returns are sent at once, up to the largest number of requests.
// Failed returns are sent again a few at a time, or one at a time while no release
// succeeds, with pauses. So a backend that refuses everything gets one request a second,
// however many returns there are. Once it answers, the returns are sent as fast as it
// answers.
type Returner[C any] struct {
	request     Request[C]
	maxInFlight int // the largest number of requests under way

	mu          sync.Mutex      // protects the fields below
	ctx         context.Context // the ctx of all requests
	stop        context.CancelFunc
	timer       *time.Timer
	scheduled   []*Return[C]  // not due yet, in the order in which they are due
	neverFailed []*Return[C]  // due, and not failed
	failed      []*Return[C]  // due again after a failure
	inFlight    int           // requests under way
	retrying    int           // requests under way for returns that failed before
	maxRetrying int           // the largest number of retrying
	pause       time.Duration // the pause of all failed returns
	nextRetry   time.Time     // the earliest time of the next retry
	answers     int           // the number of answered requests
	lastRound   bool          // each return that is left is sent only once more
	givenUp     int           // the number of returns that were given up since CountGivenUp
	failure     error         // the last error
	finishing   bool
	closed      bool          // finished is closed, and no request is sent
	finished    chan struct{} // closed when finishing is set and no return is left, or after Abandon
}

const (
	// MaxInFlight is the usual largest number of requests under way.
	MaxInFlight = 64

	firstPause = 10 * time.Millisecond
	maxPause   = time.Second // the longest pause
)

// New makes a Returner that has at most maxInFlight requests under way.
func New[C any](maxInFlight int, request Request[C]) *Returner[C] {
	r := &Returner[C]{request: request, maxInFlight: maxInFlight, finished: make(chan struct{})}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Add releases x in the background.
func (r *Returner[C]) Add(x *Return[C]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.neverFailed = append(r.neverFailed, x)
	r.sendDueLocked()
}

// AddSent adds x after a first release of it was sent. If the backend answered that
// release, x is released again only if an unanswered Acquire may still be granted.
func (r *Returner[C]) AddSent(x *Return[C], now time.Time, answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !answered:
		x.failures = 1
		r.postponeLocked(x, now.Add(firstPause))
	case now.Before(x.ReleaseAgainAt):
		x.Lease.MinHold = 0 // a lease of a late Acquire needs no minimum hold
		r.postponeLocked(x, x.ReleaseAgainAt)
	}
	r.sendDueLocked()
}

// Cancel sends no more requests for x. A request that is under way continues.
func (r *Returner[C]) Cancel(x *Return[C]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.Until = time.Time{}
}

// sendDue sends the returns that are due, up to maxInFlight, and sets the timer for the
// next ones.
func (r *Returner[C]) sendDue() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sendDueLocked()
}

func (r *Returner[C]) sendDueLocked() {
	for !r.closed {
		x, wait := r.takeLocked(time.Now())
		if x != nil {
			go r.send(r.ctx, x)
			continue
		}
		switch {
		case wait < 0:
		case r.timer == nil:
			r.timer = time.AfterFunc(wait, r.sendDue)
		default:
			r.timer.Reset(wait)
		}
		if r.finishing && r.lenLocked() == 0 {
			r.closeLocked()
		}
		return
	}
}

func (r *Returner[C]) send(ctx context.Context, x *Return[C]) {
	sent, outcome, err := time.Now(), Unanswerable, error(nil)
	defer func() { // even if the driver panics
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			r.failure = err
		}
		r.recordOutcomeLocked(x, sent, time.Now(), outcome)
		r.sendDueLocked()
	}()
	outcome, err = r.request(ctx, x, sent)
}

// takeLocked returns the next return to send now; recordOutcomeLocked must get its
// outcome. If there is none, wait is the time until takeLocked may return one. A negative
// wait means: after the next new return or outcome.
func (r *Returner[C]) takeLocked(now time.Time) (x *Return[C], wait time.Duration) {
	for len(r.scheduled) > 0 && !r.scheduled[0].due.After(now) {
		if x := popFirst(&r.scheduled); x.failures > 0 {
			r.failed = append(r.failed, x)
		} else {
			r.neverFailed = append(r.neverFailed, x)
		}
	}
	// If no failed return is under way, one goes first. Otherwise a steady stream of new
	// returns would keep it waiting for ever.
	if x := r.takeFailedLocked(now, 1); x != nil {
		return x, 0
	}
	if r.inFlight < r.maxInFlight {
		if x := popUnexpired(&r.neverFailed, now); x != nil {
			r.inFlight++
			x.sentInLastRound = r.lastRound
			return x, 0
		}
	}
	if x := r.takeFailedLocked(now, max(r.maxRetrying, 1)); x != nil {
		return x, 0
	}
	wait = -1
	if len(r.scheduled) > 0 {
		wait = r.scheduled[0].due.Sub(now)
	}
	if len(r.failed) > 0 && r.inFlight < r.maxInFlight && now.Before(r.nextRetry) {
		if rest := r.nextRetry.Sub(now); wait < 0 || rest < wait {
			wait = rest
		}
	}
	return nil, wait
}

// takeFailedLocked takes a failed return, if fewer than limit of them are under way.
func (r *Returner[C]) takeFailedLocked(now time.Time, limit int) *Return[C] {
	if r.retrying >= limit || r.inFlight >= r.maxInFlight || now.Before(r.nextRetry) {
		return nil
	}
	x := popUnexpired(&r.failed, now)
	if x != nil {
		r.inFlight++
		r.retrying++
	}
	return x
}

// recordOutcomeLocked records the outcome of a request, which was sent at the time sent.
func (r *Returner[C]) recordOutcomeLocked(x *Return[C], sent, now time.Time, o Outcome) {
	r.inFlight--
	if x.failures > 0 {
		r.retrying--
	}
	switch {
	case o == Done:
		r.answers++
		r.maxRetrying, r.pause, r.nextRetry = min(2*max(r.maxRetrying, 1), r.maxInFlight), 0, time.Time{}
		x.failures, x.Lease.MinHold = 0, 0 // a lease of a late Acquire needs no minimum hold
		switch {
		case !sent.Before(x.ReleaseAgainAt):
		case r.lastRound:
			r.givenUp++
		default:
			r.postponeLocked(x, x.ReleaseAgainAt)
		}
	case o == Unanswerable, x.sentInLastRound:
		r.givenUp++
	default:
		r.scheduleRetryLocked(x, now)
	}
}

// scheduleRetryLocked schedules a retry of x, and a pause for all failed returns. The
// pause grows while no release succeeds.
func (r *Returner[C]) scheduleRetryLocked(x *Return[C], now time.Time) {
	r.maxRetrying = 1
	if x.failures > 0 || r.pause == 0 { // failures of new returns must not prolong the pause
		r.pause = min(max(2*r.pause, firstPause), maxPause)
		r.nextRetry = now.Add(r.pause)
	}
	x.failures++
	r.postponeLocked(x, now.Add(backoff.Doubled(firstPause, x.failures, min(max(x.TTL/20, 2*time.Millisecond), maxPause))))
}

func (r *Returner[C]) postponeLocked(x *Return[C], due time.Time) {
	if r.lastRound {
		x.failures = 0
		r.neverFailed = append(r.neverFailed, x)
		return
	}
	x.due = due
	i, _ := slices.BinarySearchFunc(r.scheduled, due, func(y *Return[C], due time.Time) int {
		if y.due.After(due) {
			return 1
		}
		return -1 // x comes after those that are due at the same time
	})
	r.scheduled = slices.Insert(r.scheduled, i, x)
}

// CountGivenUp begins to count the returns that the Returner gives up.
func (r *Returner[C]) CountGivenUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.givenUp = 0
}

// Progress returns how many requests have been answered, and whether a request is under
// way, or has failed and not been answered since.
func (r *Returner[C]) Progress() (answers int, unanswered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	failed := func(x *Return[C]) bool { return x.failures > 0 }
	return r.answers, r.inFlight > 0 || len(r.failed) > 0 || slices.ContainsFunc(r.scheduled, failed)
}

// Finish returns a channel that is closed when no return is left. No return may be added
// after that.
func (r *Returner[C]) Finish() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finishing = true
	r.sendDueLocked()
	return r.finished
}

// CutShort cancels the requests that have no answer yet. The last round sends them again,
// because perhaps only their connections hang.
func (r *Returner[C]) CutShort() {
	r.mu.Lock()
	stop := r.stop
	if !r.closed {
		r.ctx, r.stop = context.WithCancel(context.Background())
	}
	r.mu.Unlock()
	stop()
}

// LastRound sends each return that is left once more, and then never again. A return that
// is under way is sent once more if its request fails.
func (r *Returner[C]) LastRound() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastRound = true
	r.neverFailed = slices.Concat(r.neverFailed, r.failed, r.scheduled)
	for _, x := range r.neverFailed {
		x.failures = 0
	}
	r.scheduled, r.failed = nil, nil
	r.sendDueLocked()
}

// Abandon ends the requests under way. It returns the number of leases and claims that
// were not released, and the last error.
func (r *Returner[C]) Abandon() (left int, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closeLocked()
	return r.lenLocked() + r.givenUp, r.failure
}

// lenLocked returns the number of returns, including those under way.
func (r *Returner[C]) lenLocked() int {
	return len(r.scheduled) + len(r.neverFailed) + len(r.failed) + r.inFlight
}

// closeLocked stops all sending.
func (r *Returner[C]) closeLocked() {
	if r.closed {
		return
	}
	r.closed = true
	close(r.finished)
	r.stop()
	if r.timer != nil {
		r.timer.Stop()
	}
}

// popUnexpired removes and returns the first return whose lease has not expired, or nil.
// It drops the expired ones before it.
func popUnexpired[C any](queue *[]*Return[C], now time.Time) *Return[C] {
	for len(*queue) > 0 {
		if x := popFirst(queue); now.Before(x.Until) {
			return x
		}
	}
	return nil
}

// popFirst removes and returns the first return of a queue.
func popFirst[C any](queue *[]*Return[C]) *Return[C] {
	x := (*queue)[0]
	(*queue)[0] = nil // so that the array does not keep it
	*queue = (*queue)[1:]
	return x
}
