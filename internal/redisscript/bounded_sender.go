package redisscript

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/lazyctx"
)

// boundedSender is a Sender whose requests end with their ctx, whatever the client under
// it waits for: an answer, a connection, or a free place in its pool. Neither rueidis nor
// go-redis does that in all cases.
//
// The caller makes a request itself where the request can be ended (see callerRequests).
// Otherwise a worker makes it, a goroutine that then waits for the next request. A caller
// that gives up leaves the worker, now a straggler, alone with the request. The server
// refuses a straggler's claim after its end, and the worker discards the answer. While
// there are maxStragglers, a new request waits, until its own ctx ends.
type boundedSender struct {
	Sender
	life           context.Context
	callerRequests *callerRequests // nil if the client is not Punctual
	stragglers     atomic.Int32
	stragglerEnded chan struct{} // holds one: a straggler has ended

	mu     sync.Mutex // protects both below
	idle   []*worker
	closed bool
	loops  sync.WaitGroup
}

const (
	maxStragglers  = 256
	maxIdleWorkers = 64
)

// A worker is a goroutine that makes one request after the other.
type worker struct {
	next    chan struct{} // holds one: a request is to be made; closed when there will be no more
	done    chan struct{} // holds one: the answer is there
	late    *time.Timer   // stopped while no caller waits
	outcome atomic.Int32  // answered or givenUp, whichever came first

	do     func() // nil for Run, so that this most frequent request makes no garbage
	ctx    context.Context
	script *Script
	call   Call
	reply  Reply
}

const (
	answered = 1 + iota
	givenUp
)

func newBoundedSender(s Sender, life context.Context) *boundedSender {
	p := &boundedSender{Sender: s, life: life, stragglerEnded: make(chan struct{}, 1)}
	if c, ok := s.(Punctual); ok {
		p.callerRequests = newCallerRequests(s, c.Patience(), life)
	}
	return p
}

// Run implements Sender.
func (p *boundedSender) Run(ctx context.Context, s *Script, c Call) Reply {
	if neverEnds(ctx) {
		return p.Sender.Run(ctx, s, c)
	}
	now := time.Now()
	if p.callerRequests != nil {
		if r, ok := p.callerRequests.begin(ctx, now); ok {
			reply := p.Sender.Run(r, s, c)
			p.callerRequests.noteAnswer(reply, now)
			if err := p.callerRequests.end(r); err != nil && reply.Err != nil {
				reply.Err = err
			}
			return reply
		}
	}
	w, err := p.takeWorker(ctx)
	if err != nil {
		return Reply{Err: err}
	}
	w.ctx, w.script, w.call = p.workerContext(ctx), s, c
	if err := p.wait(ctx, w); err != nil {
		return Reply{Err: err}
	}
	reply := w.reply
	p.returnWorker(w)
	if p.callerRequests != nil {
		p.callerRequests.noteAnswer(reply, now)
	}
	return reply
}

// workerContext returns the ctx of a request that a worker makes. A client that has one
// connection for all requests, and would close it at the deadline, gets a ctx without a
// deadline, because closing would lose all requests on that connection.
func (p *boundedSender) workerContext(ctx context.Context) context.Context {
	if _, pooled := p.Sender.(Pooled); !pooled && p.callerRequests != nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// RunAll implements Sender.
func (p *boundedSender) RunAll(ctx context.Context, s *Script, calls []Call) []Reply {
	all, err := callBounded(ctx, p, func() []Reply { return p.Sender.RunAll(p.workerContext(ctx), s, calls) })
	if err != nil {
		all = make([]Reply, len(calls))
		for i := range all {
			all[i].Err = err
		}
	}
	return all
}

// Confirm implements Sender.
func (p *boundedSender) Confirm(ctx context.Context, c Confirmation) (Reply, int) {
	type both struct {
		Reply
		n int
	}
	b, err := callBounded(ctx, p, func() both {
		r, n := p.Sender.Confirm(ctx, c)
		return both{r, n}
	})
	if err != nil {
		return Reply{Err: err}, 0
	}
	return b.Reply, b.n
}

// Scan implements Sender.
func (p *boundedSender) Scan(ctx context.Context, pattern string, f func(keys []string)) error {
	var mu sync.Mutex // protects over, and what f does
	over := false
	said, err := callBounded(ctx, p, func() error {
		return p.Sender.Scan(ctx, pattern, func(keys []string) {
			mu.Lock()
			defer mu.Unlock()
			if !over {
				f(keys)
			}
		})
	})
	mu.Lock()
	defer mu.Unlock()
	over = true
	if err != nil {
		return err
	}
	return said
}

// Servers implements Sender.
func (p *boundedSender) Servers(ctx context.Context) ([]Server, error) {
	type both struct {
		all []Server
		err error
	}
	b, err := callBounded(ctx, p, func() both {
		all, err := p.Sender.Servers(ctx)
		return both{all, err}
	})
	if err != nil {
		return nil, err
	}
	for i := range b.all {
		b.all[i].Do = p.boundedDo(b.all[i].Do)
	}
	return b.all, b.err
}

func (p *boundedSender) boundedDo(do func(context.Context, ...string) (string, error)) func(context.Context, ...string) (string, error) {
	return func(ctx context.Context, command ...string) (string, error) {
		var said error
		text, err := callBounded(ctx, p, func() (text string) {
			text, said = do(ctx, command...)
			return text
		})
		if err != nil {
			return "", err
		}
		return text, said
	}
}

// callBounded makes a request other than Run. Its error says why the caller does not wait
// for the answer; the request's own error is in the answer.
func callBounded[T any](ctx context.Context, p *boundedSender, f func() T) (answer T, err error) {
	if neverEnds(ctx) {
		return f(), nil
	}
	w, err := p.takeWorker(ctx)
	if err != nil {
		return answer, err
	}
	got := new(T) // if we give up, the worker may still write it
	w.do = func() { *got = f() }
	if err := p.wait(ctx, w); err != nil {
		return answer, err
	}
	p.returnWorker(w)
	return *got, nil
}

// neverEnds reports whether this ctx never ends.
func neverEnds(ctx context.Context) bool {
	_, bounded := ctx.Deadline()
	return !bounded && lazyctx.CallerDone(ctx) == nil
}

// takeWorker waits until there are few enough stragglers, and returns a worker that is
// idle, or a new one.
func (p *boundedSender) takeWorker(ctx context.Context) (*worker, error) {
	for p.stragglers.Load() >= maxStragglers {
		select {
		case <-p.stragglerEnded:
			if p.stragglers.Load() < maxStragglers {
				p.wakeWaiter() // there may be room for the next caller, too
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.life.Done():
			return nil, driver.ErrClosed
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, driver.ErrClosed
	}
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return w, nil
	}
	w := &worker{next: make(chan struct{}, 1), done: make(chan struct{}, 1), late: time.NewTimer(time.Hour)}
	w.late.Stop()
	p.loops.Go(func() { p.run(w) })
	return w, nil
}

// wakeWaiter wakes one caller that waits for fewer stragglers.
func (p *boundedSender) wakeWaiter() {
	select {
	case p.stragglerEnded <- struct{}{}:
	default:
	}
}

// wait hands the request to w, and waits for its answer. After an error w is a straggler.
func (p *boundedSender) wait(ctx context.Context, w *worker) (err error) {
	deadline, bounded := ctx.Deadline()
	if bounded {
		w.late.Reset(time.Until(deadline))
		defer w.late.Stop()
	}
	w.next <- struct{}{}
	select {
	case <-w.done:
		return nil
	case <-w.late.C:
		err = context.DeadlineExceeded
	case <-lazyctx.CallerDone(ctx):
		err = gaveUp(ctx)
	case <-p.life.Done():
		err = driver.ErrClosed
	}
	p.stragglers.Add(1)
	if w.outcome.CompareAndSwap(0, givenUp) {
		return err
	}
	p.stragglers.Add(-1)
	<-w.done
	return nil
}

// returnWorker takes back a worker whose answer has been read.
func (p *boundedSender) returnWorker(w *worker) {
	w.do, w.ctx, w.script, w.call, w.reply = nil, nil, nil, Call{}, Reply{}
	w.outcome.Store(0)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= maxIdleWorkers {
		close(w.next)
		return
	}
	p.idle = append(p.idle, w)
}

func (p *boundedSender) run(w *worker) {
	for range w.next {
		if w.do != nil {
			w.do()
		} else {
			w.reply = p.Sender.Run(w.ctx, w.script, w.call)
		}
		if w.outcome.CompareAndSwap(0, answered) {
			w.done <- struct{}{}
			continue
		}
		p.stragglers.Add(-1)
		p.wakeWaiter()
		return // the caller that gave up may still use its timer
	}
}

// close lets no request begin any more, and ends the idle workers. It also waits until
// the client has given up the requests of the stragglers, but not for ever, because a
// client may be set to wait for ever.
func (p *boundedSender) close() {
	p.mu.Lock()
	p.closed = true
	for _, w := range p.idle {
		close(w.next)
	}
	p.idle = nil
	p.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		p.loops.Wait()
		close(ended)
	}()
	timeout := time.NewTimer(2 * serverTimeout)
	defer timeout.Stop()
	select {
	case <-ended:
	case <-timeout.C:
	}
}
