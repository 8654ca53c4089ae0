package sim

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A link is the connection between one process and one node. The process uses it as the
// driver of a server across a network. A request is executed once or never, perhaps long
// after its caller gave up. Requests overtake each other. So the link follows the rule of
// driver.End: it sends the end with the request, on the node's clock, and the node
// refuses a request that arrives later.
type link struct {
	w *world
	p *process
	n *node

	listeners driver.Listeners

	mu         sync.Mutex // protects what follows
	dice       *dice
	cutUntil   moment // no message arrives before that
	lastSample sample
	closed     bool
}

func newLink(p *process, n *node) *link {
	return &link{
		w: p.w, p: p, n: n, dice: diceOf(p.w.plan.fateSeed + uint64(1000*p.number+n.number)),
		lastSample: sample{n.clock.now(), time.Now()}, // the clock when it was connected
	}
}

var (
	errReset = errors.New("connection reset")
	errLate  = errors.New("the request came after its end")
)

func (r *link) failed(op, name string, err error) error {
	return &driver.Error{Backend: "node", Op: driver.Op(op), Name: name, Err: err}
}

// drawFate draws the fate of a request that is sent now.
func (r *link) drawFate() fate {
	weather := r.w.weather()
	r.mu.Lock()
	defer r.mu.Unlock()
	f := weather.fate(r.dice)
	if r.w.now() < r.cutUntil {
		f.requestLost, f.reset = true, false
	}
	return f
}

func (r *link) isCut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.w.now() < r.cutUntil
}

// learn notes the node's clock in an answer.
func (r *link) learn(node time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastSample = sample{node, time.Now()}
}

// latest returns the last time on the node's clock at which a request with this end can
// take effect.
func (r *link) latest(end time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastSample.bound(end)
}

type reply[T any] struct {
	value T
	err   error
}

// sendOver sends a request over a link, and waits for the answer until ctx ends. hasEnd
// means that the node refuses the request after the end of ctx.
func sendOver[T any](ctx context.Context, r *link, op, name string, hasEnd bool, f func(server) (T, error)) (T, error) {
	var none T
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	if closed {
		return none, driver.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, driver.End(ctx))
		defer cancel()
	}
	for {
		in := make(chan reply[T], 1)
		carry(ctx, r, op, name, hasEnd, f, in)
		select {
		case a := <-in:
			if a.err == errLate && ctx.Err() == nil {
				continue // the node's clock was ahead of the estimate, which the answer has corrected
			}
			if a.err == errLate || a.err == errReset {
				a.err = r.failed(op, name, a.err)
			}
			return a.value, a.err
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

// carry brings a request to the node, and the answer back.
func carry[T any](ctx context.Context, r *link, op, name string, hasEnd bool, f func(server) (T, error), in chan reply[T]) {
	fate := r.drawFate()
	end, _ := ctx.Deadline()
	limit := r.latest(end)
	if !hasEnd || r.w.planted.noEnds {
		limit = time.UnixMicro(math.MaxInt64 / 2)
	}
	answer := func(a reply[T]) {
		at := r.n.clock.now()
		r.p.after(fate.backDelay, func() {
			if fate.replyLost && !fate.reset || r.isCut() {
				return
			}
			if fate.replyLost {
				a = reply[T]{err: errReset}
			}
			r.learn(at)
			in <- a
		})
	}
	r.w.after(r.p.pauseLeft()+fate.outDelay, func() {
		if fate.requestLost || !r.n.handle(func() {
			var a reply[T]
			if r.n.clock.now().After(limit) {
				a.err = errLate
			} else {
				a.value, a.err = f(r.n.session(r))
				if op != "read" && r.w.plan.backend != "store" {
					r.w.checkQueueHead(r.n, name)
				}
				if r.w.plan.backend == "quorum" {
					r.w.queue.readNode(r.w, r.n, name)
				}
			}
			r.w.note(name, r.p, "a node handles "+op, nodeAnswer{r.n.number, a.err})
			answer(a)
		}) {
			if fate.reset {
				r.p.after(fate.backDelay, func() { in <- reply[T]{err: errReset} })
			}
		}
	})
}

// signal is called by the node. Signals are delayed, lost or repeated, and overtake each
// other.
func (r *link) signal(s driver.Signal) {
	w := r.w.weather()
	r.mu.Lock()
	times := 1
	if w.lostSignals > 0 && r.dice.chance(w.lostSignals) {
		times = 0
	} else if w.repeatedSignals > 0 && r.dice.chance(w.repeatedSignals) {
		times = 2
	}
	var delays []time.Duration
	for range times {
		delays = append(delays, w.drawDelay(r.dice))
	}
	r.mu.Unlock()
	for _, d := range delays {
		r.p.after(d, func() {
			if !r.isCut() {
				r.listeners.Notify(s)
			}
		})
	}
}

// Listen implements driver.Signaler.
func (r *link) Listen(f func(driver.Signal)) (stop func()) {
	r.n.session(r) // so that the node can send signals
	return r.listeners.Listen(f)
}

func (r *link) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := c.Validate(); err != nil {
		return driver.Grant{}, err
	}
	r.w.queue.noteOwner(r.w, c)
	return sendOver(ctx, r, "acquire", c.Name, true, func(s server) (driver.Grant, error) {
		g, err := s.Acquire(context.Background(), c)
		if err == nil && c.Force {
			r.w.checkOpened(r.n, c.Name)
		}
		return g, err
	})
}

func (r *link) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	return sendOver(ctx, r, "renew", leases[0].Name, false, func(s server) ([]error, error) {
		r.w.history.checkRenewals(r.p, leases)
		return s.Renew(context.Background(), leases)
	})
}

func (r *link) Release(ctx context.Context, l driver.LeaseRef) error {
	r.w.queue.checkGivesBack(r.w, r.n.number, l)
	_, err := sendOver(ctx, r, "release", l.Name, l.HasEnd, func(s server) (struct{}, error) {
		return struct{}{}, s.Release(context.Background(), l)
	})
	return err
}

func (r *link) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	return sendOver(ctx, r, "read", name, false, func(s server) (driver.Entry, error) {
		return s.Inspect(context.Background(), name)
	})
}

func (r *link) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	_, err := sendOver(ctx, r, "break", name, false, func(s server) (struct{}, error) {
		return struct{}{}, s.Break(context.Background(), name, fence, delay, by)
	})
	return err
}

func (r *link) RaiseFence(ctx context.Context, l driver.LeaseRef, fence uint64) (uint64, error) {
	return sendOver(ctx, r, "raise", l.Name, false, func(s server) (uint64, error) {
		return s.RaiseFence(context.Background(), l, fence)
	})
}

func (r *link) Properties() driver.Properties {
	return driver.Properties{
		Backend: "node", Clock: driver.ClockServer, FenceSurvives: driver.FencesRiseByClock, MinTTL: driver.MinTTL, PushesGrants: true,
	}
}

// Close closes the link for new requests. Messages that are under way still arrive.
func (r *link) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}
