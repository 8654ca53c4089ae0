package pawl_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/engine"
)

// Short names for the helpers of all tests.
var skipIfShort, noError, isError = basictest.SkipIfShort, basictest.NoError, basictest.IsError

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// errOf returns the error of a call with two results.
func errOf(_ any, err error) error { return err }

// clientWithHangingRenewals makes a client whose renewals hang if a lease in the batch
// has a name that begins with "h".
func (w *world) clientWithHangingRenewals(o *pawl.Options) (*pawl.Client, *network) {
	w.t.Helper()
	c, net := w.client(o)
	net.renewFunc = func(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
		if slices.ContainsFunc(leases, func(l driver.LeaseRef) bool { return l.Name[0] == 'h' }) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return net.Driver.Renew(ctx, leases)
	}
	return c, net
}

// timeoutError is a client library's error for a request that took too long.
type timeoutError struct{ host string }

func (e *timeoutError) Error() string { return e.host + ": " + context.DeadlineExceeded.Error() }

func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

// slowDriver is a driver over a network in which requests are slow and may arrive after
// their calls. A claim that arrives after driver.End changes nothing.
type slowDriver struct {
	engine.Driver

	mu        sync.Mutex                           // protects all below
	delay     func(op string, n int) time.Duration // until the n-th request of an operation arrives; below 0: never
	failAfter func(op string, n int) time.Duration // until an unanswered call fails; 0: when its ctx ends
	sent      map[string]int
}

// Close does not stop requests that are under way.
func (s *slowDriver) Close() error { return nil }

func (s *slowDriver) count(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[op]
}

// send runs do when the request arrives. It waits for the answer or the end of the call.
func send[T any](ctx context.Context, s *slowDriver, op string, do func() (T, error)) (v T, err error) {
	s.mu.Lock()
	s.sent[op]++
	n, failure := s.sent[op], make(<-chan time.Time)
	delay := s.delay(op, n)
	if s.failAfter != nil {
		if d := s.failAfter(op, n); d > 0 {
			failure = time.After(d)
		}
	}
	s.mu.Unlock()
	answered := make(chan func() (T, error), 1)
	if delay >= 0 {
		time.AfterFunc(delay, func() {
			v, err := do()
			answered <- func() (T, error) { return v, err }
		})
	}
	select {
	case answer := <-answered:
		return answer()
	case <-ctx.Done():
		return v, ctx.Err()
	case <-failure:
		return v, errNet
	}
}

func (s *slowDriver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	end := driver.End(ctx)
	return send(ctx, s, "acquire", func() (driver.Grant, error) {
		if !time.Now().Before(end) {
			return driver.Grant{}, errNet
		}
		return s.Driver.Acquire(background, c)
	})
}

func (s *slowDriver) Release(ctx context.Context, l driver.LeaseRef) error {
	_, err := send(ctx, s, "release", func() (any, error) { return nil, s.Driver.Release(background, l) })
	return err
}

// slowClient makes a client over a slow network.
func (w *world) slowClient(o *pawl.Options, delay func(op string, n int) time.Duration) (*pawl.Client, *slowDriver) {
	w.t.Helper()
	s := &slowDriver{Driver: engine.Full(w.memory.Driver()), delay: delay, sent: map[string]int{}}
	return w.clientOf(s, o), s
}

// delayFirst returns a delay for the first request of an operation; all others arrive at
// once.
func delayFirst(op string, late time.Duration) func(string, int) time.Duration {
	return func(o string, n int) time.Duration {
		if o == op && n == 1 {
			return late
		}
		return 0
	}
}

// server is a driver that releases one lease after the other, each in releaseTime.
type server struct {
	*network
	releaseTime time.Duration
	answerDelay time.Duration
	released    atomic.Int64
	healthy     func(l driver.LeaseRef) bool // whether the release of l is answered; nil: each one is

	mu     sync.Mutex // protects idleAt
	idleAt time.Time  // when it will have made all releases that were sent
}

func (s *server) Release(ctx context.Context, l driver.LeaseRef) error {
	s.released.Add(1)
	if s.healthy != nil && !s.healthy(l) {
		<-ctx.Done()
		return ctx.Err()
	}
	s.mu.Lock()
	now := time.Now()
	if s.idleAt.Before(now) {
		s.idleAt = now
	}
	s.idleAt = s.idleAt.Add(s.releaseTime)
	wait := s.idleAt.Sub(now)
	s.mu.Unlock()
	if err := sleep(ctx, wait+s.answerDelay); err != nil {
		return err
	}
	return s.network.Release(ctx, l)
}

// clientWithLeases makes a client of a server, and acquires this number of leases.
func (w *world) clientWithLeases(leases int, s *server) *pawl.Client {
	w.t.Helper()
	s.network = w.network()
	c := w.clientOf(s, nil)
	for i := range leases {
		must(c.Mutex("x" + strconv.Itoa(i)).Lock(background))(w.t)
	}
	return c
}
