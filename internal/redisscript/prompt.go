package redisscript

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// prompt is a Sender whose requests end with their ctx, whatever the client under it
// waits for: an answer, a connection, a free place among those that there are. Neither
// rueidis nor go-redis does that in all cases.
//
// A request is made by its caller, where that can be ended (see direct), or by a
// goroutine that waits for the next one afterwards. Whoever gives up leaves it alone with
// the request: a straggler. It changes nothing after its end, and what it answers is for
// nobody. There are no more than mostStragglers (and as many as had begun by then):
// further requests wait for them, and end with their own ctx.
type prompt struct {
	Sender
	life       context.Context
	direct     *direct // nil if the client is not Punctual
	stragglers atomic.Int32
	fewer      chan struct{} // holds one: a straggler has ended

	mu    sync.Mutex // protects both below
	idle  []*worker
	over  bool
	loops sync.WaitGroup
}

const (
	mostStragglers = 256
	mostIdle       = 64
)

// A worker is a goroutine that makes one request after the other.
type worker struct {
	next    chan struct{} // holds one: there is something to do; closed when there is no more
	done    chan struct{} // holds one: so is the answer
	late    *time.Timer   // stopped while nobody waits
	outcome atomic.Int32  // answered or givenUp, whichever came first

	do     func() // nil for Run, which is mostly wanted, and so makes no garbage
	ctx    context.Context
	script *Script
	call   Call
	reply  Reply
}

const (
	answered = 1 + iota
	givenUp
)

func newPrompt(s Sender, life context.Context) *prompt {
	p := &prompt{Sender: s, life: life, fewer: make(chan struct{}, 1)}
	if c, ok := s.(Punctual); ok {
		p.direct = newDirect(s, c.Patience(), life)
	}
	return p
}

// Run implements Sender.
func (p *prompt) Run(ctx context.Context, s *Script, c Call) Reply {
	if alone(ctx) {
		return p.Sender.Run(ctx, s, c)
	}
	now := time.Now()
	if p.direct != nil {
		if r, ok := p.direct.begin(ctx, now); ok {
			reply := p.Sender.Run(r, s, c)
			p.direct.note(reply, now)
			if err := p.direct.end(r); err != nil && reply.Err != nil {
				reply.Err = err
			}
			return reply
		}
	}
	w, err := p.take(ctx)
	if err != nil {
		return Reply{Err: err}
	}
	w.ctx, w.script, w.call = p.left(ctx), s, c
	if err := p.wait(ctx, w); err != nil {
		return Reply{Err: err}
	}
	reply := w.reply
	p.give(w)
	if p.direct != nil {
		p.direct.note(reply, now)
	}
	return reply
}

// left is the ctx of a request that is left alone when its caller gives up. A client that
// has one connection for all, and would close it at the deadline, does not hear of that:
// all that is on its way there would be lost with it.
func (p *prompt) left(ctx context.Context) context.Context {
	if _, pooled := p.Sender.(Pooled); !pooled && p.direct != nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// RunAll implements Sender.
func (p *prompt) RunAll(ctx context.Context, s *Script, calls []Call) []Reply {
	all, err := promptly(ctx, p, func() []Reply { return p.Sender.RunAll(p.left(ctx), s, calls) })
	if err != nil {
		all = make([]Reply, len(calls))
		for i := range all {
			all[i].Err = err
		}
	}
	return all
}

// Confirm implements Sender.
func (p *prompt) Confirm(ctx context.Context, c Confirmation) (Reply, int) {
	type both struct {
		Reply
		n int
	}
	b, err := promptly(ctx, p, func() both {
		r, n := p.Sender.Confirm(ctx, c)
		return both{r, n}
	})
	if err != nil {
		return Reply{Err: err}, 0
	}
	return b.Reply, b.n
}

// Scan implements Sender.
func (p *prompt) Scan(ctx context.Context, pattern string, f func(keys []string)) error {
	var mu sync.Mutex // protects over, and what f does
	over := false
	said, err := promptly(ctx, p, func() error {
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
func (p *prompt) Servers(ctx context.Context) ([]Server, error) {
	type both struct {
		all []Server
		err error
	}
	b, err := promptly(ctx, p, func() both {
		all, err := p.Sender.Servers(ctx)
		return both{all, err}
	})
	if err != nil {
		return nil, err
	}
	for i := range b.all {
		b.all[i].Do = p.prompted(b.all[i].Do)
	}
	return b.all, b.err
}

func (p *prompt) prompted(do func(context.Context, ...string) (string, error)) func(context.Context, ...string) (string, error) {
	return func(ctx context.Context, command ...string) (string, error) {
		var said error
		text, err := promptly(ctx, p, func() (text string) {
			text, said = do(ctx, command...)
			return text
		})
		if err != nil {
			return "", err
		}
		return text, said
	}
}

// promptly makes a request of any other kind. The error is not the request's, but says
// that there was no waiting for it.
func promptly[T any](ctx context.Context, p *prompt, f func() T) (answer T, err error) {
	if alone(ctx) {
		return f(), nil
	}
	w, err := p.take(ctx)
	if err != nil {
		return answer, err
	}
	got := new(T) // not ours if we give up
	w.do = func() { *got = f() }
	if err := p.wait(ctx, w); err != nil {
		return answer, err
	}
	p.give(w)
	return *got, nil
}

// alone reports whether nobody will give up on this ctx.
func alone(ctx context.Context) bool {
	_, bounded := ctx.Deadline()
	return !bounded && driver.CallerDone(ctx) == nil
}

// take waits until there are few enough stragglers, and returns one that is idle, or a
// new one.
func (p *prompt) take(ctx context.Context) (*worker, error) {
	for p.stragglers.Load() >= mostStragglers {
		select {
		case <-p.fewer:
			if p.stragglers.Load() < mostStragglers {
				p.tellFewer() // those who wait may be more than the stragglers that end
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.life.Done():
			return nil, driver.ErrClosed
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
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

// tellFewer lets one look who waits for fewer stragglers.
func (p *prompt) tellFewer() {
	select {
	case p.fewer <- struct{}{}:
	default:
	}
}

// wait has the request made, and waits for its answer. After an error w is a straggler.
func (p *prompt) wait(ctx context.Context, w *worker) (err error) {
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
	case <-driver.CallerDone(ctx):
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

// give takes back one whose answer has been read.
func (p *prompt) give(w *worker) {
	w.do, w.ctx, w.script, w.call, w.reply = nil, nil, nil, Call{}, Reply{}
	w.outcome.Store(0)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || len(p.idle) >= mostIdle {
		close(w.next)
		return
	}
	p.idle = append(p.idle, w)
}

func (p *prompt) run(w *worker) {
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
		p.tellFewer()
		return // its timer may be somebody's still
	}
}

// close lets nothing begin any more, and ends those that wait. The stragglers are waited
// for until the client has given them up, too; not for ever, for it may be set to wait as
// long as that.
func (p *prompt) close() {
	p.mu.Lock()
	p.over = true
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
	enough := time.NewTimer(2 * serverTimeout)
	defer enough.Stop()
	select {
	case <-ended:
	case <-enough.C:
	}
}
