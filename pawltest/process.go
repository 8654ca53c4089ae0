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

// A process is the driver of one client, with faults between it and the backend. It
// overrides each method that a fault affects, including those that push.
type process struct {
	engine.Driver

	mu      sync.Mutex // protects all below
	current fault
	leases  map[driver.Token]string // the name of each lease that the client was granted
	waits   map[driver.Token]string // the name for which each claim waits
	watches map[string]int          // how many watches the client has on each name
	closed  bool
}

func newProcess(d engine.Driver) *process {
	return &process{Driver: d, leases: map[driver.Token]string{}, waits: map[driver.Token]string{}, watches: map[string]int{}}
}

// A fault is the current fault of a process. The zero fault means no fault.
type fault struct {
	err   error
	hang  chan struct{} // closed when the fault ends; nil: requests do not hang
	delay time.Duration
}

func (f *fault) stopsPushes() bool { return f.err != nil || f.hang != nil }

func (p *process) setFault(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current.hang != nil && p.current.hang != f.hang {
		close(p.current.hang)
	}
	if f.hang != nil {
		f.hang = make(chan struct{}) // one for each process, because each closes its own
	}
	p.current = f
}

func (p *process) fault() fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// send sends a request, and applies the fault of p.
func send[T any](ctx context.Context, p *process, op driver.Op, name string, request func() (T, error)) (T, error) {
	var none T
	fault := p.fault()
	failure := func(err error) (T, error) {
		return none, &driver.Error{Backend: "memory", Op: op, Name: name, Err: err}
	}
	switch {
	case fault.err != nil:
		return failure(fault.err)
	case fault.hang != nil:
		select {
		case <-fault.hang:
		case <-ctx.Done():
			return failure(ctx.Err())
		}
	}
	answer, err := request()
	if fault.delay > 0 {
		select {
		case <-time.After(fault.delay):
		case <-ctx.Done():
			return failure(ctx.Err())
		}
	}
	return answer, err
}

// addLease remembers the name of the lease that a token has.
func (p *process) addLease(name string, token driver.Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leases[token] = name
	delete(p.waits, token)
}

// setWaiting remembers whether a claim waits.
func (p *process) setWaiting(name string, token driver.Token, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if waits {
		p.waits[token] = name
	} else {
		delete(p.waits, token)
	}
}

// blocked describes the claims that wait and the names that are watched, or returns "".
func (p *process) blocked() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, name := range p.waits {
		all = append(all, fmt.Sprintf("a claim waits for %q (Lock, Do or Election.Run)", name))
	}
	for name, n := range p.watches {
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

func (p *process) tokensOf(name string) (tokens []driver.Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for token, leaseName := range p.leases {
		if leaseName == name {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

func (p *process) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	p.setWaiting(c.Name, c.Token, c.Queue)
	return send(ctx, p, driver.OpAcquire, c.Name, func() (driver.Grant, error) {
		grant, err := p.Driver.Acquire(ctx, c)
		switch {
		case err == nil:
			p.addLease(c.Name, c.Token)
		case !errors.Is(err, driver.ErrHeld):
			p.setWaiting(c.Name, c.Token, false)
		}
		return grant, err
	})
}

func (p *process) AcquireAll(ctx context.Context, claims []driver.Claim) ([]driver.Grant, error) {
	return send(ctx, p, driver.OpAcquire, claims[0].Name, func() ([]driver.Grant, error) {
		grants, err := p.Driver.AcquireAll(ctx, claims)
		if err == nil {
			for _, c := range claims {
				p.addLease(c.Name, c.Token)
			}
		}
		return grants, err
	})
}

func (p *process) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	return send(ctx, p, driver.OpRenew, leases[0].Name, func() ([]error, error) {
		answers, err := p.Driver.Renew(ctx, leases)
		for i := range answers {
			if answers[i] == nil { // this may be the first answer about a lease that was granted from the queue
				p.addLease(leases[i].Name, leases[i].Token)
			}
		}
		return answers, err
	})
}

func (p *process) Release(ctx context.Context, l driver.LeaseRef) error {
	p.setWaiting(l.Name, l.Token, false)
	_, err := send(ctx, p, driver.OpRelease, l.Name, func() (struct{}, error) {
		p.mu.Lock()
		delete(p.leases, l.Token)
		p.mu.Unlock()
		return struct{}{}, p.Driver.Release(ctx, l)
	})
	return err
}

func (p *process) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	return send(ctx, p, driver.OpRead, name, func() (driver.Entry, error) { return p.Driver.Inspect(ctx, name) })
}

func (p *process) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	_, err := send(ctx, p, driver.OpBreak, name, func() (struct{}, error) {
		return struct{}{}, p.Driver.Break(ctx, name, fence, delay, by)
	})
	return err
}

func (p *process) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		list, err := send(ctx, p, driver.OpList, "", func() (iter.Seq2[driver.Entry, error], error) {
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
		if fault := p.fault(); !fault.stopsPushes() {
			if s.Kind == driver.SignalGranted {
				p.setWaiting("", s.Token, false)
			}
			f(s)
		}
	})
}

func (p *process) Watch(name string, f func()) (stop func()) {
	p.addWatches(name, 1)
	end := p.Driver.Watch(name, func() {
		if fault := p.fault(); !fault.stopsPushes() {
			f()
		}
	})
	return func() {
		end()
		p.addWatches(name, -1)
	}
}

func (p *process) addWatches(name string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches[name] += n
}

func (p *process) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return p.Driver.Close()
}
