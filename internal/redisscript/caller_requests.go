package redisscript

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/lazyctx"
)

// Most requests are alone, and the server answers them at once. Handing a request to
// another goroutine, so that its caller can give up, costs half as much as the request,
// because each hand-over wakes a thread. So the caller makes the request itself where the
// request can be ended in another way: the client keeps the deadline (Punctual), and when
// the caller gives up, the driver closes the connection that the request waits on
// (Interruptible).
//
// Callers do so only while the server answers quickly, so that the driver seldom closes a
// connection. To a server that is slow or far away, the workers of boundedSender send the
// requests. They close no connections.
const (
	// quickAnswerMaxAge is the age of the last quick answer up to which the driver takes
	// the connection to be alive. It is also the least time that a request needs to its
	// deadline, because the client closes the connection then.
	quickAnswerMaxAge = time.Second

	// quickAnswerTime is the longest time for an answer of a server that counts as quick.
	quickAnswerTime = 5 * time.Millisecond

	// giveUpCheckInterval is the time between two checks for callers that have given up,
	// while there are callers.
	giveUpCheckInterval = 5 * time.Millisecond

	// answerGrace is the time that the server still has for an answer after the caller
	// has given up.
	answerGrace = 20 * time.Millisecond
)

// callerRequests are the requests that their callers' goroutines make.
type callerRequests struct {
	patience    time.Duration             // the least time that the client waits for an answer, see Punctual
	cut         func() (interrupt func()) // Waiting of an Interruptible client; nil for others
	life        context.Context
	began       time.Time
	quickAnswer atomic.Int64 // the time of the last answer, since began; 0 if it was slow or an error
	free        sync.Pool    // of *callerRequest

	mu       sync.Mutex // protects all below, and the fields of each callerRequest
	underWay []*callerRequest
	timer    *time.Timer
	timerSet bool
}

// A callerRequest is the ctx of a request that its caller makes. The client reads its
// deadline. The channel of Done is closed when the caller gives up, or at the deadline.
// rueidis calls Done if the request shares its connection with others, and then also
// waits for that channel.
type callerRequest struct {
	context.Context // the caller's, for its values
	deadline        time.Time
	canceled        <-chan struct{} // nil if the caller never gives up
	d               *callerRequests

	// Protected by d.mu.
	at        int // in underWay
	done      chan struct{}
	err       error // why it was given up
	givenUpAt time.Time
	interrupt func() // nil if the client waits for done, and after interrupt was called
}

func newCallerRequests(s Sender, patience time.Duration, life context.Context) *callerRequests {
	d := &callerRequests{patience: patience, life: life, began: time.Now()}
	if cutter, ok := s.(Interruptible); ok && cutter.Interruptible() {
		d.cut = cutter.Waiting
	}
	d.free.New = func() any { return &callerRequest{d: d} }
	return d
}

// begin reports whether the caller may make a request with this ctx itself, now.
func (d *callerRequests) begin(ctx context.Context, now time.Time) (*callerRequest, bool) {
	last := d.quickAnswer.Load()
	if last == 0 || now.Sub(d.began)-time.Duration(last) >= quickAnswerMaxAge {
		return nil, false
	}
	canceled := lazyctx.CallerDone(ctx)
	deadline, bounded := ctx.Deadline()
	left := deadline.Sub(now)
	if !bounded || left < max(quickAnswerMaxAge, d.patience-answerGrace) || canceled != nil && d.cut == nil {
		return nil, false
	}
	r, _ := d.free.Get().(*callerRequest)
	r.Context, r.deadline, r.canceled = ctx, deadline, canceled
	d.mu.Lock()
	defer d.mu.Unlock()
	r.at = len(d.underWay)
	d.underWay = append(d.underWay, r)
	if !d.timerSet {
		d.timerSet = true
		if d.timer == nil {
			d.timer = time.AfterFunc(giveUpCheckInterval, d.sweepGivenUp)
		} else {
			d.timer.Reset(giveUpCheckInterval)
		}
	}
	return r, true
}

// end takes out a request that the client has answered. It returns why the request was
// given up before that, or nil.
func (d *callerRequests) end(r *callerRequest) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.underWay[len(d.underWay)-1]
	d.underWay[r.at], last.at = last, r.at
	d.underWay[len(d.underWay)-1] = nil
	d.underWay = d.underWay[:len(d.underWay)-1]
	err := r.err
	if r.done == nil { // otherwise the client may still refer to it
		*r = callerRequest{d: d}
		d.free.Put(r)
	}
	return err
}

// noteAnswer learns from an answer how quick the server is.
func (d *callerRequests) noteAnswer(r Reply, began time.Time) {
	now := time.Now()
	if r.Err == nil && now.Sub(began) < quickAnswerTime {
		d.quickAnswer.Store(max(int64(now.Sub(d.began)), 1))
	} else {
		d.quickAnswer.Store(0)
	}
}

// sweepGivenUp ends the requests whose callers have given up.
func (d *callerRequests) sweepGivenUp() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, r := range d.underWay {
		switch {
		case r.err == nil:
			if r.err = d.why(r, now); r.err == nil {
				continue
			}
			r.givenUpAt = now
			if r.done != nil {
				close(r.done)
			} else if d.cut != nil {
				r.interrupt = d.cut()
			}
		case r.interrupt != nil && now.Sub(r.givenUpAt) >= answerGrace:
			r.interrupt()
			r.interrupt = nil
		}
	}
	if d.timerSet = len(d.underWay) > 0; d.timerSet {
		d.timer.Reset(giveUpCheckInterval)
	}
}

// why returns why a request is over, or nil. The client keeps the deadline, too, except
// for a request that shares its connection with others.
func (d *callerRequests) why(r *callerRequest, now time.Time) error {
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
func (r *callerRequest) Deadline() (time.Time, bool) { return r.deadline, true }

// Done implements context.Context.
func (r *callerRequest) Done() <-chan struct{} {
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
func (r *callerRequest) Err() error {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	return r.err
}
