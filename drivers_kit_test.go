package pawl_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/engine"
)

// The steps that all tests share.
var nightly, noError, isError = basictest.Nightly, basictest.NoError, basictest.IsError

// believers are the leases of a name that their holders trust, with what each excludes.
type believers struct {
	mu     sync.Mutex
	leases []believer
}

// look fails the test if holders believe in leases that exclude each other at this
// moment.
func (b *believers) look(t *testing.T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leases = slices.DeleteFunc(b.leases, func(l believer) bool { return l.Err() != nil })
	slices.SortFunc(b.leases, func(l, m believer) int { return cmp.Compare(l.Fence(), m.Fence()) })
	sum := int64(0)
	for i, l := range b.leases { // in the order of their grants: each counts those before it
		if sum += int64(l.weight); sum > int64(l.limit) {
			t.Errorf("%d is held of %d: %v", sum, l.limit, b.leases)
		}
		if i > 0 && l.Fence() == b.leases[i-1].Fence() {
			t.Errorf("the same fence twice: %v", b.leases)
		}
	}
}

type believer struct {
	*pawl.Lease
	weight, limit int
}

// hang makes a client whose renewals hang for the names that begin with "hangs".
func (w *world) hang(o *pawl.Options) (*pawl.Client, *faulty) {
	w.t.Helper()
	c, f := w.client(o)
	f.renews = func(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
		if slices.ContainsFunc(leases, func(l driver.LeaseRef) bool { return l.Name[0] == 'h' }) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return f.Driver.Renew(ctx, leases)
	}
	return c, f
}

// timeoutError is the error by which a backend's client library says that a request took
// too long.
type timeoutError struct{ host string }

func (e *timeoutError) Error() string { return e.host + ": " + context.DeadlineExceeded.Error() }

func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

// slow is a driver over a network in which requests take their time and outlive their
// calls. A claim that arrives after its end changes nothing, as driver.End says.
type slow struct {
	engine.Driver

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
func send[T any](ctx context.Context, s *slow, op string, do func() (T, error)) (v T, err error) {
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
	case <-broken:
		return v, errNet
	}
}

func (s *slow) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	end := driver.End(ctx)
	return send(ctx, s, "acquire", func() (driver.Grant, error) {
		if !time.Now().Before(end) {
			return driver.Grant{}, errNet
		}
		return s.Driver.Acquire(background, c)
	})
}

func (s *slow) Release(ctx context.Context, l driver.LeaseRef) error {
	_, err := send(ctx, s, "release", func() (any, error) { return nil, s.Driver.Release(background, l) })
	return err
}

// slow makes a client over a slow network.
func (w *world) slow(o *pawl.Options, delay func(op string, n int) time.Duration) (*pawl.Client, *slow) {
	w.t.Helper()
	s := &slow{Driver: engine.Full(w.memory.Driver()), delay: delay, sent: map[string]int{}}
	return w.clientOf(s, o), s
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

// server is a driver that does its releases one after the other, and takes a while for
// each.
type server struct {
	*faulty
	each     time.Duration
	lag      time.Duration // of each answer
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
	if err := sleep(ctx, wait+s.lag); err != nil {
		return err
	}
	return s.faulty.Release(ctx, l)
}

// serve makes a client of a server, with so many leases.
func (w *world) serve(leases int, s *server) *pawl.Client {
	w.t.Helper()
	s.faulty = w.faulty()
	c := w.clientOf(s, nil)
	for i := range leases {
		must(w.t)(c.Mutex("x" + strconv.Itoa(i)).Lock(background))
	}
	return c
}

var errBug = errors.New("a bug")

// unlucky is the bad luck of the crowd of one process: its driver and its Observer fail
// and panic, and each waiter may give up at any time.
type unlucky struct{ *dice }

// step takes up to 300 µs, and fails or panics now and then.
func (u *unlucky) step(op string) error {
	time.Sleep(time.Duration(u.n(300)) * time.Microsecond)
	switch r := u.n(100); {
	case r < 3 && op == "acquire": // the others may be sent by the client itself, where a panic ends the program
		panic(errBug)
	case r < 6:
		return errNet
	}
	return nil
}

// visit locks once, in some way, and works for a while. It recovers from the panics that
// it makes.
func (u *unlucky) visit(t *testing.T, c *pawl.Client, b *believers) {
	defer func() {
		if r := recover(); r != nil && r != errBug {
			panic(r)
		}
	}()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	if u.n(2) == 0 {
		time.AfterFunc(time.Duration(u.n(5000))*time.Microsecond, cancel)
	}
	var l *pawl.Lease
	var err error
	weight := driver.Exclusive
	switch r := u.n(20); {
	case r == 0:
		l, err = c.Mutex("x").TryLock(ctx)
	case r == 1:
		weight = 1
		l, err = c.RWMutex("x").RLock(ctx)
	case r == 2:
		l, err = c.Mutex("x", pawl.WithTTL(time.Minute)).Lock(ctx)
	default:
		l, err = c.Mutex("x").Lock(ctx)
	}
	if err != nil {
		return
	}
	b.mu.Lock()
	b.leases = append(b.leases, believer{l, weight, driver.Unlimited})
	b.mu.Unlock()
	b.look(t)
	time.Sleep(time.Duration(u.n(500)) * time.Microsecond)
	b.look(t)
	if err := l.Release(ctx); err != nil && !errors.Is(err, pawl.ErrLost) && !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("release: %v", err)
	}
}
