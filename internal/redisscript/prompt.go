package redisscript

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// prompt is a Sender whose requests end with their ctx, whatever the client under it waits for: an answer, a connection, a
// free place among those that there are. Neither rueidis nor go-redis does that in all cases.
//
// A request is made by its caller, where that can be ended (see direct), or by a goroutine that waits for the next one
// afterwards. Whoever gives up leaves it alone with the
// request: a straggler. It changes nothing after its end, and what it answers is for nobody. There are no more than
// mostStragglers (and as many as had begun by then): further requests wait for them, and end with their own ctx.
type prompt struct {
	Sender
	life       context.Context
	direct     *direct // nil if the client is not Punctual
	stragglers atomic.Int32
	fewer      chan struct{} // holds one: a straggler has ended

	mu    sync.Mutex // protects both below
	idle  []*errand
	over  bool
	loops sync.WaitGroup
}

const (
	mostStragglers = 256
	mostIdle       = 64
)

// An errand is a goroutine that makes one request after the other.
type errand struct {
	next chan struct{} // holds one: do, or what Run needs, is there; closed when there is no more
	done chan struct{} // holds one: so is the answer
	late *time.Timer   // stopped while nobody waits
	fate atomic.Int32  // answered or givenUp, whichever came first

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
		if l, ok := p.direct.begin(ctx, now); ok {
			reply := p.Sender.Run(l, s, c)
			p.direct.note(reply, now)
			if err := p.direct.end(l); err != nil && reply.Err != nil {
				reply.Err = err
			}
			return reply
		}
	}
	e, err := p.take(ctx)
	if err != nil {
		return Reply{Err: err}
	}
	e.ctx, e.script, e.call = p.left(ctx), s, c
	if err := p.wait(ctx, e); err != nil {
		return Reply{Err: err}
	}
	reply := e.reply
	p.give(e)
	if p.direct != nil {
		p.direct.note(reply, now)
	}
	return reply
}

// left is the ctx of a request that is left alone when its caller gives up. A client that has one connection for all, and
// would close it at the deadline, does not hear of that: all that is on its way there would be lost with it.
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

// promptly makes a request of any other kind. The error is not the request's, but says that there was no waiting for it.
func promptly[T any](ctx context.Context, p *prompt, f func() T) (answer T, err error) {
	if alone(ctx) {
		return f(), nil
	}
	e, err := p.take(ctx)
	if err != nil {
		return answer, err
	}
	got := new(T) // not ours if we give up
	e.do = func() { *got = f() }
	if err := p.wait(ctx, e); err != nil {
		return answer, err
	}
	p.give(e)
	return *got, nil
}

// alone reports whether nobody will give up on this ctx.
func alone(ctx context.Context) bool {
	_, bounded := ctx.Deadline()
	return !bounded && driver.CallerDone(ctx) == nil
}

// take waits until there are few enough stragglers, and returns one that is idle, or a new one.
func (p *prompt) take(ctx context.Context) (*errand, error) {
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
		e := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return e, nil
	}
	e := &errand{next: make(chan struct{}, 1), done: make(chan struct{}, 1), late: time.NewTimer(time.Hour)}
	e.late.Stop()
	p.loops.Go(func() { p.run(e) })
	return e, nil
}

// tellFewer lets one look who waits for fewer stragglers.
func (p *prompt) tellFewer() {
	select {
	case p.fewer <- struct{}{}:
	default:
	}
}

// wait has the request made, and waits for its answer. After an error e is a straggler.
func (p *prompt) wait(ctx context.Context, e *errand) (err error) {
	deadline, bounded := ctx.Deadline()
	if bounded {
		e.late.Reset(time.Until(deadline))
		defer e.late.Stop()
	}
	e.next <- struct{}{}
	select {
	case <-e.done:
		return nil
	case <-e.late.C:
		err = context.DeadlineExceeded
	case <-driver.CallerDone(ctx):
		err = gaveUp(ctx)
	case <-p.life.Done():
		err = driver.ErrClosed
	}
	p.stragglers.Add(1)
	if e.fate.CompareAndSwap(0, givenUp) {
		return err
	}
	p.stragglers.Add(-1)
	<-e.done
	return nil
}

// give takes back one whose answer has been read.
func (p *prompt) give(e *errand) {
	e.do, e.ctx, e.script, e.call, e.reply = nil, nil, nil, Call{}, Reply{}
	e.fate.Store(0)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || len(p.idle) >= mostIdle {
		close(e.next)
		return
	}
	p.idle = append(p.idle, e)
}

func (p *prompt) run(e *errand) {
	for range e.next {
		if e.do != nil {
			e.do()
		} else {
			e.reply = p.Sender.Run(e.ctx, e.script, e.call)
		}
		if e.fate.CompareAndSwap(0, answered) {
			e.done <- struct{}{}
			continue
		}
		p.stragglers.Add(-1)
		p.tellFewer()
		return // its timer may be somebody's still
	}
}

// close lets nothing begin any more, and ends those that wait. The stragglers are waited for until the client has given
// them up, too; not for ever, for it may be set to wait as long as that.
func (p *prompt) close() {
	p.mu.Lock()
	p.over = true
	for _, e := range p.idle {
		close(e.next)
	}
	p.idle = nil
	p.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		p.loops.Wait()
		close(ended)
	}()
	enough := time.NewTimer(2 * patience)
	defer enough.Stop()
	select {
	case <-ended:
	case <-enough.C:
	}
}
