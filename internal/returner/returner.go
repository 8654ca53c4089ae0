// Package returner releases leases and claims in the background: for a client, and for
// one node of a quorum. Package keepalive decides which are due.
package returner

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/keepalive"
)

// A Returner sends the releases of keepalive.Returns. It has one timer, and one goroutine
// for each request under way.
type Returner[C any] struct {
	request Request[C]

	mu        sync.Mutex // protects all below
	returns   keepalive.Returns[C]
	ctx       context.Context // the ctx of all requests
	stop      context.CancelFunc
	timer     *time.Timer
	finishing bool
	closed    bool          // finished is closed
	finished  chan struct{} // closed when finishing is set and nothing is left, or Abandon was called
	failure   error         // the last error
}

// A Request releases x once. Its error goes with every outcome except Done.
type Request[C any] func(ctx context.Context, x *keepalive.Return[C], sent time.Time) (keepalive.Outcome, error)

// New makes a Returner that has at most `most` requests under way.
func New[C any](most int, request Request[C]) *Returner[C] {
	r := &Returner[C]{request: request, returns: keepalive.Returns[C]{Most: most}, finished: make(chan struct{})}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Add releases x in the background.
func (r *Returner[C]) Add(x *keepalive.Return[C], now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.returns.Add(x, now)
	r.sendDueLocked()
}

// AddSent is Add after a first release of x: see [keepalive.Returns.AddSent].
func (r *Returner[C]) AddSent(x *keepalive.Return[C], now time.Time, answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.returns.AddSent(x, now, answered)
	r.sendDueLocked()
}

// Cancel sends no more requests for x. A request that is under way continues.
func (r *Returner[C]) Cancel(x *keepalive.Return[C]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.Until = time.Time{}
}

// sendDue sends the returns that are due, as far as there is room, and sets the timer for
// the next ones.
func (r *Returner[C]) sendDue() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sendDueLocked()
}

func (r *Returner[C]) sendDueLocked() {
	for !r.closed {
		x, wait := r.returns.Take(time.Now())
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
		if r.finishing && r.returns.Len() == 0 {
			r.endLocked()
		}
		return
	}
}

func (r *Returner[C]) send(ctx context.Context, x *keepalive.Return[C]) {
	sent, outcome, err := time.Now(), keepalive.Unanswerable, error(nil)
	defer func() { // even if the driver panics
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			r.failure = err
		}
		r.returns.Answered(x, sent, time.Now(), outcome)
		r.sendDueLocked()
	}()
	outcome, err = r.request(ctx, x, sent)
}

// CountGivenUp begins to count the returns that the Returner gives up.
func (r *Returner[C]) CountGivenUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.returns.CountGivenUp()
}

// Progress returns how many requests have been answered, and whether a request is under
// way, or has failed and not been answered since.
func (r *Returner[C]) Progress() (done int, unanswered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.returns.Progress()
}

// Finish returns a channel that is closed when nothing is left to give back. Nothing is
// added after that.
func (r *Returner[C]) Finish() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finishing = true
	r.sendDueLocked()
	return r.finished
}

// CutShort cancels the requests that have no answer yet. The last round sends them again,
// because perhaps only their connections are silent.
func (r *Returner[C]) CutShort() {
	r.mu.Lock()
	stop := r.stop
	if !r.closed {
		r.ctx, r.stop = context.WithCancel(context.Background())
	}
	r.mu.Unlock()
	stop()
}

// LastRound sends every release that is left once more, and never again.
func (r *Returner[C]) LastRound() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.returns.LastRound()
	r.sendDueLocked()
}

// Abandon ends the requests under way. It returns the number of leases and claims that
// were not given back, and the last error.
func (r *Returner[C]) Abandon() (left int, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked()
	return r.returns.Unreleased(), r.failure
}

// endLocked stops all sending.
func (r *Returner[C]) endLocked() {
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
