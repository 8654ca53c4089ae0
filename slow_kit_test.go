package pawl_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// slow is a driver over a network in which requests take their time and outlive their
// calls. A claim that arrives after its end changes nothing, as driver.End says.
type slow struct {
	*locktable.Driver

	mu     sync.Mutex                           // protects all below
	delay  func(op string, n int) time.Duration // until the n-th request of an operation arrives; negative is never
	breaks func(op string, n int) time.Duration // when its call fails, if it is not answered; 0 is with its ctx
	sent   map[string]int
}

// Close does not stop requests that are under way.
func (s *slow) Close() error { return nil }

func (s *slow) count(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[op]
}

// send runs do when the request arrives, and waits for that or for the end of the call.
func (s *slow) send(ctx context.Context, op string, do func()) error {
	s.mu.Lock()
	s.sent[op]++
	n, broken := s.sent[op], make(<-chan time.Time)
	delay := s.delay(op, n)
	if s.breaks != nil {
		if d := s.breaks(op, n); d > 0 {
			broken = time.After(d)
		}
	}
	s.mu.Unlock()
	done := make(chan struct{})
	if delay >= 0 {
		go func() {
			defer close(done)
			time.Sleep(delay)
			do()
		}()
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-broken:
		return errNet
	}
}

func (s *slow) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	var out struct {
		g   driver.Grant
		err error
	}
	answer := make(chan struct{}, 1)
	end := driver.End(ctx)
	err := s.send(ctx, "acquire", func() {
		if time.Now().Before(end) {
			out.g, out.err = s.Driver.Acquire(background, c)
		} else {
			out.err = errNet
		}
		answer <- struct{}{}
	})
	if err != nil {
		return driver.Grant{}, err
	}
	<-answer
	return out.g, out.err
}

func (s *slow) Release(ctx context.Context, l driver.LeaseRef) error {
	answer := make(chan error, 1)
	if err := s.send(ctx, "release", func() { answer <- s.Driver.Release(background, l) }); err != nil {
		return err
	}
	return <-answer
}

// slow makes a client over a slow network.
func (w *world) slow(o *pawl.Options, delay func(op string, n int) time.Duration) (*pawl.Client, *slow) {
	w.t.Helper()
	s := &slow{Driver: w.memory.Driver(), delay: delay, sent: map[string]int{}}
	c, err := pawl.New(s, o)
	noError(w.t, err)
	w.t.Cleanup(func() { _ = c.Close(background) })
	return c, s
}

// first is a delay: the first request of an operation arrives late, and all others at
// once.
func first(op string, late time.Duration) func(string, int) time.Duration {
	return func(o string, n int) time.Duration {
		if o == op && n == 1 {
			return late
		}
		return 0
	}
}

// stubborn is a driver whose claims ignore their ctx and wait for the answer.
type stubborn struct {
	*faulty
	takes time.Duration
}

func (s *stubborn) Acquire(_ context.Context, c driver.Claim) (driver.Grant, error) {
	time.Sleep(s.takes)
	return s.faulty.Acquire(background, c)
}

// slowBatch is a driver that takes a millisecond for each lease it renews.
type slowBatch struct{ *faulty }

func (s *slowBatch) Renew(ctx context.Context, l []driver.LeaseRef) ([]error, error) {
	if err := sleep(ctx, time.Duration(len(l))*time.Millisecond); err != nil {
		return nil, err
	}
	return s.faulty.Renew(ctx, l)
}

// server is a driver that does its releases one after the other, and takes a while for
// each.
type server struct {
	*faulty
	each     time.Duration
	released atomic.Int64
	healthy  func(l driver.LeaseRef) bool // nil is all; the others hang

	mu   sync.Mutex // protects free
	free time.Time  // when it has done what was sent
}

func (s *server) Release(ctx context.Context, l driver.LeaseRef) error {
	s.released.Add(1)
	if s.healthy != nil && !s.healthy(l) {
		<-ctx.Done()
		return ctx.Err()
	}
	s.mu.Lock()
	now := time.Now()
	if s.free.Before(now) {
		s.free = now
	}
	s.free = s.free.Add(s.each)
	wait := s.free.Sub(now)
	s.mu.Unlock()
	if err := sleep(ctx, wait); err != nil {
		return err
	}
	return s.faulty.Release(ctx, l)
}

// serve makes a client of a server, with so many leases.
func (w *world) serve(leases int, s *server) *pawl.Client {
	w.t.Helper()
	s.faulty = &faulty{Driver: w.memory.Driver()}
	c, err := pawl.New(s, nil)
	noError(w.t, err)
	for i := range leases {
		must(w.t)(c.Mutex("x" + strconv.Itoa(i)).Lock(background))
	}
	return c
}

// reluctant is a driver that takes a while to close.
type reluctant struct {
	driver.Driver
	takes time.Duration
}

func (r *reluctant) Close() error {
	time.Sleep(r.takes)
	return r.Driver.Close()
}
