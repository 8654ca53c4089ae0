package pawl

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/keepalive"
)

// returner gives leases and claims back in the background: leases whose release the
// backend did not confirm, claims whose outcome is unknown, and at Close all leases that
// are left. Package keepalive decides which are due. The returner has one timer, and one
// goroutine for each request under way, keepalive.Out at most.
type returner struct {
	request returnRequest
	returns keepalive.Returns[*claim]

	mu        sync.Mutex      // protects all below
	ctx       context.Context // the ctx of all requests
	stop      context.CancelFunc
	timer     *time.Timer
	finishing bool
	closed    bool          // finished is closed
	finished  chan struct{} // closed when finishing is set and nothing is left, or Close waits no longer
	failure   error         // the last error
}

// A returnRequest releases x once. It returns nil if x is not held any more.
type returnRequest func(ctx context.Context, x *keepalive.Return[*claim], sent time.Time) error

func newReturner(request returnRequest) *returner {
	r := &returner{request: request, finished: make(chan struct{})}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

func (r *returner) add(x *keepalive.Return[*claim], now time.Time) {
	r.returns.Add(x, now)
	r.sendDue()
}

// addLater adds a return that is due at its Again.
func (r *returner) addLater(x *keepalive.Return[*claim]) {
	r.returns.AddLater(x)
	r.sendDue()
}

// sendDue sends the returns that are due, as far as there is room, and sets the timer for
// the next ones.
func (r *returner) sendDue() {
	r.mu.Lock()
	defer r.mu.Unlock()
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

func (r *returner) send(ctx context.Context, x *keepalive.Return[*claim]) {
	defer r.sendDue()
	sent, outcome := time.Now(), keepalive.Never
	defer func() { r.returns.Answered(x, sent, time.Now(), outcome) }() // even if the driver panics
	err := r.request(ctx, x, sent)
	switch {
	case err == nil:
		outcome = keepalive.Done
		return
	case !errors.Is(err, ErrClosed) && !permanent(err):
		outcome = keepalive.Failed
	}
	r.mu.Lock()
	r.failure = err
	r.mu.Unlock()
}

// finish returns a channel that is closed when nothing is left to give back. Nothing is
// added after that.
func (r *returner) finish() <-chan struct{} {
	r.mu.Lock()
	r.finishing = true
	r.mu.Unlock()
	r.sendDue()
	return r.finished
}

// cutShort ends the requests under way, which have no answer. The last round sends them
// again, because perhaps only their connections are silent.
func (r *returner) cutShort() {
	r.mu.Lock()
	stop := r.stop
	if !r.closed {
		r.ctx, r.stop = context.WithCancel(context.Background())
	}
	r.mu.Unlock()
	stop()
}

// lastRound sends every release that is left once more, and never again.
func (r *returner) lastRound() {
	r.returns.LastRound()
	r.sendDue()
}

// abandon ends the requests under way. It returns the number of leases and claims that
// were not given back, and the last error.
func (r *returner) abandon() (left int, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked()
	return r.returns.Left(), r.failure
}

// endLocked makes the returner send nothing any more.
func (r *returner) endLocked() {
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
