package pawl_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

var background = context.Background()

// atOnce breaks a lease and leaves its name open.
var atOnce = &pawl.BreakOptions{Delay: -1}

// faulty is a driver between a client and its backend that a test can make fail. One hook
// is called before an operation is sent, and one after it. If the first returns an error,
// the request is lost; if the second does, the reply.
type faulty struct {
	engine.Driver

	mu        sync.Mutex
	before    func(op string) error
	after     func(op string) error
	calls     map[string]int
	latency   time.Duration
	stuck     func(op string, n int) bool // the n-th request of an operation gets no answer
	hear      func(driver.Signal)         // what the client listens with
	claimed   func(driver.Token)          // called with the token of each claim
	noSignals bool
	noPush    bool
	oneByOne  bool          // names are on different servers
	punctual  bool          // a stuck request fails at its deadline, before its ctx ends, as on a socket
	closes    time.Duration // how long Close takes

	// These take the place of a request, and of the delivery of a signal.
	around func(ctx context.Context, op string, do func() error) error
	signal func(tell func())

	// These take the place of the backend's methods.
	acquires func(context.Context, driver.Claim) (driver.Grant, error)
	renews   func(context.Context, []driver.LeaseRef) ([]error, error)
}

var errNet = errors.New("network down")

func (f *faulty) step(ctx context.Context, op string, do func() error) error {
	f.mu.Lock()
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	f.calls[op]++
	before, after, latency := f.before, f.after, f.latency
	stuck := f.stuck != nil && f.stuck(op, f.calls[op])
	f.mu.Unlock()
	if f.around != nil {
		return f.around(ctx, op, do)
	}
	if deadline, ok := ctx.Deadline(); stuck && f.punctual {
		if ok {
			time.Sleep(time.Until(deadline))
		}
		return context.DeadlineExceeded
	}
	if stuck {
		<-ctx.Done()
		return ctx.Err()
	}
	if latency > 0 {
		if err := sleep(ctx, latency/2); err != nil {
			return err
		}
	}
	if before != nil {
		if err := before(op); err != nil {
			return err
		}
	}
	err := do()
	if latency > 0 {
		if err := sleep(ctx, latency/2); err != nil {
			return err // the reply is lost
		}
	}
	if after != nil {
		if lost := after(op); lost != nil {
			return lost
		}
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// after calls f, and returns how long that took, in virtual time.
func after(f func() error) (took time.Duration, err error) {
	began := time.Now()
	err = f()
	return time.Since(began), err
}

// locked runs do while no other goroutine uses the fields of f.
func (f *faulty) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *faulty) set(before, after func(op string) error) {
	f.locked(func() { f.before, f.after = before, after })
}

func (f *faulty) slow(latency time.Duration) { f.locked(func() { f.latency = latency }) }

// mute loses all signals to the client.
func (f *faulty) mute() { f.locked(func() { f.noSignals = true }) }

// hang makes those requests wait for their end.
func (f *faulty) hang(stuck func(op string, n int) bool) { f.locked(func() { f.stuck = stuck }) }

func (f *faulty) count(op string) (n int) {
	f.locked(func() { n = f.calls[op] })
	return n
}

// unlessMuted calls tell unless signals are lost.
func (f *faulty) unlessMuted(tell func()) {
	if f.signal != nil {
		f.signal(tell)
		return
	}
	muted := false
	if f.locked(func() { muted = f.noSignals }); !muted {
		tell()
	}
}

func (f *faulty) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	if f.claimed != nil {
		f.claimed(c.Token)
	}
	acquire := f.Driver.Acquire
	if f.acquires != nil {
		acquire = f.acquires
	}
	err = f.step(ctx, "acquire", func() error { g, err = acquire(ctx, c); return err })
	return g, err
}

func (f *faulty) AcquireAll(ctx context.Context, claims []driver.Claim) (g []driver.Grant, err error) {
	if f.oneByOne {
		return nil, errors.ErrUnsupported
	}
	err = f.step(ctx, "acquire all", func() error { g, err = f.Driver.AcquireAll(ctx, claims); return err })
	return g, err
}

func (f *faulty) Renew(ctx context.Context, l []driver.LeaseRef) (a []error, err error) {
	renew := f.Driver.Renew
	if f.renews != nil {
		renew = f.renews
	}
	err = f.step(ctx, "renew", func() error { a, err = renew(ctx, l); return err })
	return a, err
}

func (f *faulty) Release(ctx context.Context, l driver.LeaseRef) error {
	return f.step(ctx, "release", func() error { return f.Driver.Release(ctx, l) })
}

func (f *faulty) Listen(h func(driver.Signal)) func() {
	f.hear = h
	return f.Driver.Listen(func(s driver.Signal) { f.unlessMuted(func() { h(s) }) })
}

func (f *faulty) Watch(name string, tell func()) (stop func()) {
	return f.Driver.Watch(name, func() { f.unlessMuted(tell) })
}

func (f *faulty) Inspect(ctx context.Context, name string) (e driver.Entry, err error) {
	err = f.step(ctx, "inspect", func() error { e, err = f.Driver.Inspect(ctx, name); return err })
	return e, err
}

func (f *faulty) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	return f.step(ctx, "break", func() error { return f.Driver.Break(ctx, name, fence, delay, by) })
}

func (f *faulty) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	all := f.Driver.List(ctx, prefix)
	if err := f.step(ctx, "list", func() error { return nil }); err != nil {
		return func(yield func(driver.Entry, error) bool) { yield(driver.Entry{}, err) }
	}
	return all
}

func (f *faulty) Close() error {
	time.Sleep(f.closes)
	return f.Driver.Close()
}

// holdBack keeps signals from the client and collects them until stop is called. A test
// can deliver them later.
func (f *faulty) holdBack() (late *[]driver.Signal, stop func()) {
	f.noSignals = true
	late = new([]driver.Signal)
	return late, f.Driver.Listen(func(s driver.Signal) { *late = append(*late, s) })
}

func (f *faulty) Properties() driver.Properties {
	p := f.Driver.Properties()
	p.PushesGrants, p.PushesChanges = p.PushesGrants && !f.noPush, p.PushesChanges && !f.noPush
	return p
}

// down makes every operation fail until the returned function is called.
func (f *faulty) down() (up func()) {
	f.set(func(string) error { return errNet }, nil)
	return func() { f.set(nil, nil) }
}

// world is one backend in virtual time, with as many clients as a test wants. Time moves
// only when all goroutines wait.
type world struct {
	t      *testing.T
	memory *memlock.Memory
}

// inWorld runs a test in a bubble of virtual time. Goroutines that are left at the end
// fail it.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		f(t, &world{t: t, memory: memlock.NewMemory(nil)})
	})
}

// runInWorld runs a subtest in a world of its own.
func runInWorld(t *testing.T, name string, f func(t *testing.T, w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inWorld(t, f) })
}

// faulty makes one more driver of the backend.
func (w *world) faulty() *faulty { return &faulty{Driver: engine.Full(w.memory.Driver())} }

// two makes two more clients.
func (w *world) two() (a, b *pawl.Client) {
	w.t.Helper()
	a, _, b = w.twoWithNetwork()
	return a, b
}

// twoWithNetwork makes two more clients, and returns them and the network of the first.
func (w *world) twoWithNetwork() (a *pawl.Client, net *faulty, b *pawl.Client) {
	w.t.Helper()
	a, net = w.client(nil)
	b, _ = w.client(nil)
	return a, net, b
}

// client makes one more client of the backend, as another process would have.
func (w *world) client(o *pawl.Options) (*pawl.Client, *faulty) {
	w.t.Helper()
	f := w.faulty()
	return w.clientOf(f, o), f
}

func (w *world) clientOf(d driver.Driver, o *pawl.Options) *pawl.Client {
	w.t.Helper()
	c, err := pawl.New(d, o)
	noError(w.t, err)
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// entry returns the holders and waiters of a name, as another client sees them.
func (w *world) entry(name string) driver.Entry {
	w.t.Helper()
	d := w.memory.Driver()
	defer d.Close()
	e, err := d.Inspect(context.Background(), name)
	noError(w.t, err)
	return e
}

// wantFree fails the test unless a name has neither holders nor waiters.
func (w *world) wantFree(name string) {
	w.t.Helper()
	synctest.Wait()
	if e := w.entry(name); len(e.Holders)+len(e.Waiters) > 0 {
		w.t.Errorf("%q is not free: %+v", name, e)
	}
}

func (w *world) waitersLeft(name string, want int) {
	w.t.Helper()
	synctest.Wait()
	if n := len(w.entry(name).Waiters); n != want {
		w.t.Errorf("%d wait for %q, want %d", n, name, want)
	}
}

func must(t *testing.T) func(l *pawl.Lease, err error) *pawl.Lease {
	return func(l *pawl.Lease, err error) *pawl.Lease {
		t.Helper()
		noError(t, err)
		return l
	}
}

// leavesNothing fails the test if a client still has local queues, inboxes or leases.
func leavesNothing(t *testing.T, c *pawl.Client) {
	t.Helper()
	if c.Gates()+c.Inboxes()+c.Leases() > 0 {
		t.Errorf("left behind: %d local queues, %d inboxes, %d leases", c.Gates(), c.Inboxes(), c.Leases())
	}
}

// locking locks m on a goroutine, and returns when that waits or has the lease.
func locking(t *testing.T, m *pawl.Mutex) <-chan *pawl.Lease {
	got := make(chan *pawl.Lease, 1)
	go func() { got <- must(t)(m.Lock(background)) }()
	synctest.Wait()
	return got
}

// lostFor fails the test unless err is a loss for this reason.
func lostFor(t *testing.T, err error, why pawl.Reason) *pawl.LostError {
	t.Helper()
	lost, ok := errors.AsType[*pawl.LostError](err)
	if !ok || lost.Reason != why {
		t.Fatalf("%v; want a loss: %v", err, why)
	}
	return lost
}

// unreleased fails the test unless err is of a Close that left n leases.
func unreleased(t *testing.T, err error, n int) {
	t.Helper()
	if e, ok := errors.AsType[*pawl.CloseError](err); !ok || e.Unreleased != n {
		t.Errorf("%v; want the number %d in it", err, n)
	}
}

// line is a group of waiters for one lock, and the order in which they had it.
type line struct {
	t    *testing.T
	wg   sync.WaitGroup
	mu   sync.Mutex
	past string
}

// join adds a waiter, which holds the lock for 1 ms.
func (l *line) join(who string, c *pawl.Client) {
	l.wg.Go(func() {
		lease := must(l.t)(c.Mutex("x").Lock(background))
		l.mu.Lock()
		l.past += who
		l.mu.Unlock()
		time.Sleep(time.Millisecond)
		noError(l.t, lease.Release(background))
	})
	synctest.Wait()
}

// lockWithFencesToSpare locks "x" with fences for three more waiters, which are there
// when it is granted, and have given up before it returns.
func lockWithFencesToSpare(t *testing.T, w *world, c *pawl.Client) *pawl.Lease {
	t.Helper()
	other, _ := w.client(nil)
	held := must(t)(other.Mutex("x").Lock(background))
	lock := func(ctx context.Context, got chan<- *pawl.Lease) {
		go func() {
			l, _ := c.Mutex("x").Lock(ctx)
			got <- l
		}()
		synctest.Wait()
	}
	before, cancelBefore := context.WithCancel(background)
	behind, cancelBehind := context.WithCancel(background)
	got, none := make(chan *pawl.Lease, 1), make(chan *pawl.Lease, 4)
	lock(before, none)
	lock(background, got)
	for range 3 {
		lock(behind, none)
	}
	cancelBefore()
	synctest.Wait()
	noError(t, held.Release(background))
	lease := <-got
	cancelBehind()
	for range 4 {
		if l := <-none; l != nil {
			t.Fatal("the wrong one was granted")
		}
	}
	return lease
}
