package redisscript

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Most requests are alone and are answered at once. To hand one to another goroutine, so
// that its caller can give up, costs as much as half of the request: each hand-over wakes
// a thread. So the caller makes it itself where it can be ended all the same: the client
// keeps the deadline (Punctual), and a request whose caller gives up is ended by closing
// the connection that it waits on (Interruptible).
//
// A server that was quick a moment ago does not make anybody close connections, and one
// that is slow or far away gets the goroutines of prompt, which leave connections alone.
const (
	// fresh is how lately something was answered, for a connection to be there still, and
	// how far off a deadline is at which it may as well be closed.
	fresh = time.Second

	// near is how long an answer takes at most, for the next one to be awaited so.
	near = 5 * time.Millisecond

	// glance is how often it is looked whether a caller has given up, while there are
	// any.
	glance = 5 * time.Millisecond

	// grace is how long a request has to be answered after its caller has given up.
	grace = 20 * time.Millisecond
)

// A direct makes requests in their callers' goroutines.
type direct struct {
	patience time.Duration             // of the client, beyond the deadline
	cut      func() (interrupt func()) // see Interruptible; nil if there is no such thing
	life     context.Context
	began    time.Time
	answered atomic.Int64 // since began: when the server was quick; 0 if it is not now
	free     sync.Pool    // of *directRequest

	mu      sync.Mutex // protects all below, and the fields of each directRequest
	under   []*directRequest
	timer   *time.Timer
	looking bool // the timer is set
}

// A directRequest is the ctx of a request that its caller makes. The client hears of its
// deadline. If it asks for Done it gets a channel that is closed when its caller gives up
// or at the deadline: rueidis does when the request is in line with others, and then goes
// by it.
type directRequest struct {
	context.Context // the caller's, for its values
	deadline        time.Time
	canceled        <-chan struct{} // nil if the caller never gives up
	d               *direct

	// Protected by d.mu.
	at        int // in under
	done      chan struct{}
	err       error // why it is over
	over      time.Time
	interrupt func() // nil if the client goes by done, and when it was called
}

func newDirect(s Sender, patience time.Duration, life context.Context) *direct {
	d := &direct{patience: patience, life: life, began: time.Now()}
	if cutter, ok := s.(Interruptible); ok && cutter.Interruptible() {
		d.cut = cutter.Waiting
	}
	d.free.New = func() any { return &directRequest{d: d} }
	return d
}

// begin reports whether a request with this ctx may be made so, now.
func (d *direct) begin(ctx context.Context, now time.Time) (*directRequest, bool) {
	last := d.answered.Load()
	if last == 0 || now.Sub(d.began)-time.Duration(last) >= fresh {
		return nil, false
	}
	canceled := driver.CallerDone(ctx)
	deadline, bounded := ctx.Deadline()
	left := deadline.Sub(now)
	if !bounded || left < max(fresh, d.patience-grace) || canceled != nil && d.cut == nil {
		return nil, false
	}
	r, _ := d.free.Get().(*directRequest)
	r.Context, r.deadline, r.canceled = ctx, deadline, canceled
	d.mu.Lock()
	defer d.mu.Unlock()
	r.at = len(d.under)
	d.under = append(d.under, r)
	if !d.looking {
		d.looking = true
		if d.timer == nil {
			d.timer = time.AfterFunc(glance, d.look)
		} else {
			d.timer.Reset(glance)
		}
	}
	return r, true
}

// end is for when the client has answered. It returns why the request was given up, if it
// was before that.
func (d *direct) end(r *directRequest) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.under[len(d.under)-1]
	d.under[r.at], last.at = last, r.at
	d.under[len(d.under)-1] = nil
	d.under = d.under[:len(d.under)-1]
	err := r.err
	if r.done == nil { // else the client may know it still
		*r = directRequest{d: d}
		d.free.Put(r)
	}
	return err
}

// note learns from an answer how quick the server is.
func (d *direct) note(r Reply, began time.Time) {
	now := time.Now()
	if r.Err == nil && now.Sub(began) < near {
		d.answered.Store(max(int64(now.Sub(d.began)), 1))
	} else {
		d.answered.Store(0)
	}
}

// look ends those whose caller has given up.
func (d *direct) look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, r := range d.under {
		switch {
		case r.err == nil:
			if r.err = d.why(r, now); r.err == nil {
				continue
			}
			r.over = now
			if r.done != nil {
				close(r.done)
			} else if d.cut != nil {
				r.interrupt = d.cut()
			}
		case r.interrupt != nil && now.Sub(r.over) >= grace:
			r.interrupt()
			r.interrupt = nil
		}
	}
	if d.looking = len(d.under) > 0; d.looking {
		d.timer.Reset(glance)
	}
}

// why says why a request is over, or nil. The client keeps the deadline, but not where
// the request is in line with others.
func (d *direct) why(r *directRequest, now time.Time) error {
	select {
	case <-r.canceled:
		return gaveUp(r.Context)
	case <-d.life.Done():
		return driver.ErrClosed
	default:
	}
	if !now.Before(r.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// Deadline implements context.Context.
func (r *directRequest) Deadline() (time.Time, bool) { return r.deadline, true }

// Done implements context.Context.
func (r *directRequest) Done() <-chan struct{} {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if r.done == nil {
		r.done = make(chan struct{})
		if r.err != nil {
			close(r.done)
		}
	}
	return r.done
}

// Err implements context.Context.
func (r *directRequest) Err() error {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	return r.err
}
