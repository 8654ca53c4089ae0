package pawltest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// A process is the driver of one client, with faults between it and the backend. It has
// each method that a fault affects, including those that push.
type process struct {
	engine.Driver

	mu     sync.Mutex // protects all below
	now    fault
	lookup map[driver.Token]string // the name of each lease that the client was granted
	waits  map[driver.Token]string // the name for which each claim waits
	looks  map[string]int          // how many watches the client has on each name
	closed bool
}

func newProcess(d engine.Driver) *process {
	return &process{Driver: d, lookup: map[driver.Token]string{}, waits: map[driver.Token]string{}, looks: map[string]int{}}
}

// A fault is the current fault of a process. The zero fault means no fault.
type fault struct {
	fails error
	hangs chan struct{} // closed when the requests need not hang any more
	late  time.Duration
}

func (f *fault) silent() bool { return f.fails != nil || f.hangs != nil }

func (p *process) set(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.hangs != nil && p.now.hangs != f.hangs {
		close(p.now.hangs)
	}
	if f.hangs != nil {
		f.hangs = make(chan struct{}) // one for each process, because each closes its own
	}
	p.now = f
}

func (p *process) fault() fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// asks sends a request, and applies the fault of p.
func asks[T any](ctx context.Context, p *process, op driver.Op, name string, request func() (T, error)) (T, error) {
	var none T
	wrong := p.fault()
	failed := func(err error) (T, error) {
		return none, &driver.Error{Backend: "memory", Op: op, Name: name, Err: err}
	}
	switch {
	case wrong.fails != nil:
		return failed(wrong.fails)
	case wrong.hangs != nil:
		select {
		case <-wrong.hangs:
		case <-ctx.Done():
			return failed(ctx.Err())
		}
	}
	answer, err := request()
	if wrong.late > 0 {
		select {
		case <-time.After(wrong.late):
		case <-ctx.Done():
			return failed(ctx.Err())
		}
	}
	return answer, err
}

// granted remembers the name of the lease that a token has.
func (p *process) granted(name string, token driver.Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lookup[token] = name
	delete(p.waits, token)
}

// waiting remembers that a claim waits, or that it does not any more.
func (p *process) waiting(name string, token driver.Token, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if waits {
		p.waits[token] = name
	} else {
		delete(p.waits, token)
	}
}

// blocked says which claims wait and which names are watched, or returns "".
func (p *process) blocked() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, name := range p.waits {
		all = append(all, fmt.Sprintf("a claim waits for %q (Lock, Do or Election.Run)", name))
	}
	for name, n := range p.looks {
		if n > 0 {
			all = append(all, fmt.Sprintf("%q is watched (Watch or WaitUntilFree)", name))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// isClosed reports whether the test has closed the client.
func (p *process) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func (p *process) holds(name string) (tokens []driver.Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for token, of := range p.lookup {
		if of == name {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

func (p *process) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	p.waiting(c.Name, c.Token, c.Queue)
	return asks(ctx, p, driver.OpAcquire, c.Name, func() (driver.Grant, error) {
		grant, err := p.Driver.Acquire(ctx, c)
		switch {
		case err == nil:
			p.granted(c.Name, c.Token)
		case !errors.Is(err, driver.ErrHeld):
			p.waiting(c.Name, c.Token, false)
		}
		return grant, err
	})
}

func (p *process) AcquireAll(ctx context.Context, claims []driver.Claim) ([]driver.Grant, error) {
	return asks(ctx, p, driver.OpAcquire, claims[0].Name, func() ([]driver.Grant, error) {
		grants, err := p.Driver.AcquireAll(ctx, claims)
		if err == nil {
			for _, c := range claims {
				p.granted(c.Name, c.Token)
			}
		}
		return grants, err
	})
}

func (p *process) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	return asks(ctx, p, driver.OpRenew, leases[0].Name, func() ([]error, error) {
		answers, err := p.Driver.Renew(ctx, leases)
		for i := range answers {
			if answers[i] == nil { // this may be the first answer about a lease that was granted from the queue
				p.granted(leases[i].Name, leases[i].Token)
			}
		}
		return answers, err
	})
}

func (p *process) Release(ctx context.Context, l driver.LeaseRef) error {
	p.waiting(l.Name, l.Token, false)
	_, err := asks(ctx, p, driver.OpRelease, l.Name, func() (struct{}, error) {
		p.mu.Lock()
		delete(p.lookup, l.Token)
		p.mu.Unlock()
		return struct{}{}, p.Driver.Release(ctx, l)
	})
	return err
}

func (p *process) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	return asks(ctx, p, driver.OpRead, name, func() (driver.Entry, error) { return p.Driver.Inspect(ctx, name) })
}

func (p *process) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	_, err := asks(ctx, p, driver.OpBreak, name, func() (struct{}, error) {
		return struct{}{}, p.Driver.Break(ctx, name, fence, delay, by)
	})
	return err
}

func (p *process) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		list, err := asks(ctx, p, driver.OpList, "", func() (iter.Seq2[driver.Entry, error], error) {
			return p.Driver.List(ctx, prefix), nil
		})
		if err != nil {
			yield(driver.Entry{}, err)
			return
		}
		list(yield)
	}
}

func (p *process) Listen(f func(driver.Signal)) (stop func()) {
	return p.Driver.Listen(func(s driver.Signal) {
		if wrong := p.fault(); !wrong.silent() {
			if s.Kind == driver.SignalGranted {
				p.waiting("", s.Token, false)
			}
			f(s)
		}
	})
}

func (p *process) Watch(name string, f func()) (stop func()) {
	p.looking(name, 1)
	end := p.Driver.Watch(name, func() {
		if wrong := p.fault(); !wrong.silent() {
			f()
		}
	})
	return func() {
		end()
		p.looking(name, -1)
	}
}

func (p *process) looking(name string, more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks[name] += more
}

func (p *process) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return p.Driver.Close()
}
