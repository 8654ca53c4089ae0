package pawl_test

import (
	"cmp"
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

// noDelay makes Break leave the name open.
var noDelay = &pawl.BreakOptions{Delay: -1}

// network is a driver between a client and its backend, whose faults the test sets. The
// hook before runs before a request is sent: its error means that the request is lost.
// The hook after runs after the request: its error means that the reply is lost.
type network struct {
	engine.Driver

	mu        sync.Mutex
	before    func(op string) error
	after     func(op string) error
	calls     map[string]int
	latency   time.Duration
	stuck     func(op string, n int) bool // the n-th request of an operation gets no answer
	deliver   func(driver.Signal)         // the client's function for signals
	onClaim   func(driver.Token)          // called with the token of each claim
	noSignals bool
	noPush    bool
	oneByOne  bool          // AcquireAll is not supported, as if names were on different servers
	punctual  bool          // a stuck request fails at its deadline, before its ctx ends, as on a socket
	closeTime time.Duration // how long Close takes

	properties func(p *driver.Properties) // changes the backend's properties

	// These replace the sending of a request and the delivery of a signal.
	around func(ctx context.Context, op string, do func() error) error
	signal func(notify func())

	// These replace the backend's methods.
	acquireFunc func(context.Context, driver.Claim) (driver.Grant, error)
	renewFunc   func(context.Context, []driver.LeaseRef) ([]error, error)
}

var errNet = errors.New("network down")

// request sends a request with do, and applies the faults.
func (net *network) request(ctx context.Context, op string, do func() error) error {
	net.mu.Lock()
	if net.calls == nil {
		net.calls = map[string]int{}
	}
	net.calls[op]++
	before, after, latency := net.before, net.after, net.latency
	stuck := net.stuck != nil && net.stuck(op, net.calls[op])
	net.mu.Unlock()
	if net.around != nil {
		return net.around(ctx, op, do)
	}
	if deadline, ok := ctx.Deadline(); stuck && net.punctual {
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

func timeoutCtx(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(background, d)
	t.Cleanup(cancel)
	return ctx
}

// timed calls f, and returns how long that took, in virtual time.
func timed(f func() error) (took time.Duration, err error) {
	began := time.Now()
	err = f()
	return time.Since(began), err
}

// locked runs do while no other goroutine uses the fields of the network.
func (net *network) locked(do func()) {
	net.mu.Lock()
	defer net.mu.Unlock()
	do()
}

func (net *network) setHooks(before, after func(op string) error) {
	net.locked(func() { net.before, net.after = before, after })
}

func (net *network) setLatency(latency time.Duration) { net.locked(func() { net.latency = latency }) }

// dropSignals loses all signals to the client.
func (net *network) dropSignals() { net.locked(func() { net.noSignals = true }) }

// setStuck makes the requests for which f returns true wait for the end of their ctx.
func (net *network) setStuck(f func(op string, n int) bool) { net.locked(func() { net.stuck = f }) }

func (net *network) count(op string) (n int) {
	net.locked(func() { n = net.calls[op] })
	return n
}

// deliverSignal calls notify, which delivers a signal, unless signals are lost.
func (net *network) deliverSignal(notify func()) {
	if net.signal != nil {
		net.signal(notify)
		return
	}
	dropped := false
	if net.locked(func() { dropped = net.noSignals }); !dropped {
		notify()
	}
}

func (net *network) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	if net.onClaim != nil {
		net.onClaim(c.Token)
	}
	acquire := net.Driver.Acquire
	if net.acquireFunc != nil {
		acquire = net.acquireFunc
	}
	err = net.request(ctx, "acquire", func() error { g, err = acquire(ctx, c); return err })
	return g, err
}

func (net *network) AcquireAll(ctx context.Context, claims []driver.Claim) (g []driver.Grant, err error) {
	if net.oneByOne {
		return nil, errors.ErrUnsupported
	}
	err = net.request(ctx, "acquire all", func() error { g, err = net.Driver.AcquireAll(ctx, claims); return err })
	return g, err
}

func (net *network) Renew(ctx context.Context, l []driver.LeaseRef) (a []error, err error) {
	renew := net.Driver.Renew
	if net.renewFunc != nil {
		renew = net.renewFunc
	}
	err = net.request(ctx, "renew", func() error { a, err = renew(ctx, l); return err })
	return a, err
}

func (net *network) Release(ctx context.Context, l driver.LeaseRef) error {
	return net.request(ctx, "release", func() error { return net.Driver.Release(ctx, l) })
}

func (net *network) Listen(h func(driver.Signal)) func() {
	net.deliver = h
	return net.Driver.Listen(func(s driver.Signal) { net.deliverSignal(func() { h(s) }) })
}

func (net *network) Watch(name string, notify func()) (stop func()) {
	return net.Driver.Watch(name, func() { net.deliverSignal(notify) })
}

func (net *network) Inspect(ctx context.Context, name string) (e driver.Entry, err error) {
	err = net.request(ctx, "inspect", func() error { e, err = net.Driver.Inspect(ctx, name); return err })
	return e, err
}

func (net *network) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	return net.request(ctx, "break", func() error { return net.Driver.Break(ctx, name, fence, delay, by) })
}

func (net *network) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	all := net.Driver.List(ctx, prefix)
	if err := net.request(ctx, "list", func() error { return nil }); err != nil {
		return func(yield func(driver.Entry, error) bool) { yield(driver.Entry{}, err) }
	}
	return all
}

func (net *network) Close() error {
	time.Sleep(net.closeTime)
	return net.Driver.Close()
}

// holdBack keeps signals from the client and collects them until stop is called. A test
// can deliver them later.
func (net *network) holdBack() (heldBack *[]driver.Signal, stop func()) {
	net.noSignals = true
	heldBack = new([]driver.Signal)
	return heldBack, net.Driver.Listen(func(s driver.Signal) { *heldBack = append(*heldBack, s) })
}

func (net *network) Properties() driver.Properties {
	p := net.Driver.Properties()
	p.PushesGrants, p.PushesChanges = p.PushesGrants && !net.noPush, p.PushesChanges && !net.noPush
	if net.properties != nil {
		net.properties(&p)
	}
	return p
}

// down makes every request fail until the test calls up.
func (net *network) down() (up func()) {
	net.setHooks(func(string) error { return errNet }, nil)
	return func() { net.setHooks(nil, nil) }
}

// world is one backend in virtual time, with any number of clients. Time passes only
// while all goroutines wait.
type world struct {
	t      *testing.T
	memory *memlock.Memory
}

// inWorld runs a test in a bubble of virtual time. It fails if goroutines are left at the
// end.
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

// withClient runs a test in a world with a client, and gives it the client's network.
func withClient(t *testing.T, f func(t *testing.T, w *world, c *pawl.Client, net *network)) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world) {
		c, net := w.client(nil)
		f(t, w, c, net)
	})
}

// network returns the network of another client to the backend.
func (w *world) network() *network { return &network{Driver: engine.Full(w.memory.Driver())} }

// twoClients returns two other clients of the backend.
func (w *world) twoClients() (a, b *pawl.Client) {
	w.t.Helper()
	a, _, b = w.twoWithNetwork()
	return a, b
}

// twoWithNetwork returns two other clients, and the network of the first.
func (w *world) twoWithNetwork() (a *pawl.Client, net *network, b *pawl.Client) {
	w.t.Helper()
	a, net = w.client(nil)
	b, _ = w.client(nil)
	return a, net, b
}

// client returns another client of the backend, as another process would have.
func (w *world) client(o *pawl.Options) (*pawl.Client, *network) {
	w.t.Helper()
	net := w.network()
	return w.clientOf(net, o), net
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

// wantFree fails the test unless the names have neither holders nor waiters.
func (w *world) wantFree(names ...string) {
	w.t.Helper()
	synctest.Wait()
	for _, name := range names {
		if e := w.entry(name); len(e.Holders)+len(e.Waiters) > 0 {
			w.t.Errorf("%q is not free: %+v", name, e)
		}
	}
}

// wantFenceOf fails the test unless ctx has the fence of the name's holder.
func (w *world) wantFenceOf(ctx context.Context, name string) {
	w.t.Helper()
	if fence, ok := pawl.FenceOf(ctx, name); !ok || fence != w.entry(name).Holders[0].Fence {
		w.t.Errorf("the fence of %q is %d, %v", name, fence, ok)
	}
}

func (w *world) wantWaiters(name string, want int) {
	w.t.Helper()
	synctest.Wait()
	if n := len(w.entry(name).Waiters); n != want {
		w.t.Errorf("%d claims wait for %q, want %d", n, name, want)
	}
}

// wantEqual fails the test unless got is want.
func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// wantWithin fails the test unless got is between least and most.
func wantWithin[T cmp.Ordered](t *testing.T, what string, got, least, most T) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %v, want %v to %v", what, got, least, most)
	}
}

// wantRun returns a function that fails the test unless ran is want, and err matches all
// of errs. Without errs, err must be nil.
func wantRun(t *testing.T, want bool, errs ...error) func(ran bool, err error) {
	return func(ran bool, err error) {
		t.Helper()
		if len(errs) == 0 {
			noError(t, err)
		}
		isError(t, err, errs...)
		wantEqual(t, "ran", ran, want)
	}
}

// wantNothingLeft fails the test if a client still has local queues, inboxes or leases.
func wantNothingLeft(t *testing.T, c *pawl.Client) {
	t.Helper()
	if c.LocalQueues()+c.Inboxes()+c.Leases() > 0 {
		t.Errorf("left behind: %d local queues, %d inboxes, %d leases", c.LocalQueues(), c.Inboxes(), c.Leases())
	}
}

// startLock locks m on a goroutine, and returns when Lock waits or has the lease.
func startLock(t *testing.T, m *pawl.Mutex) <-chan *pawl.Lease {
	got := make(chan *pawl.Lease, 1)
	go func() { got <- must(m.Lock(background))(t) }()
	synctest.Wait()
	return got
}

// wantLoss fails the test unless err is a loss for this reason.
func wantLoss(t *testing.T, err error, why pawl.Reason) *pawl.LostError {
	t.Helper()
	lost, ok := errors.AsType[*pawl.LostError](err)
	if !ok || lost.Reason != why {
		t.Fatalf("%v; want a loss: %v", err, why)
	}
	return lost
}

// wantUnreleased fails the test unless err is a *CloseError with n unreleased leases.
func wantUnreleased(t *testing.T, err error, n int) {
	t.Helper()
	if e, ok := errors.AsType[*pawl.CloseError](err); !ok || e.Unreleased != n {
		t.Errorf("%v; want a *CloseError with %d unreleased leases", err, n)
	}
}

// waiterLine is a group of waiters for one lock, and the order in which they got it.
type waiterLine struct {
	t      *testing.T
	wg     sync.WaitGroup
	mu     sync.Mutex
	served string
}

// join adds a waiter, which holds the lock for 1 ms.
func (l *waiterLine) join(who string, c *pawl.Client) {
	l.wg.Go(func() {
		lease := must(c.Mutex("x").Lock(background))(l.t)
		l.mu.Lock()
		l.served += who
		l.mu.Unlock()
		time.Sleep(time.Millisecond)
		noError(l.t, lease.Release(background))
	})
	synctest.Wait()
}

// lockWithFencesToSpare locks "x" with fences for three waiters. They wait when the lock
// is granted, and give up before lockWithFencesToSpare returns.
func lockWithFencesToSpare(t *testing.T, w *world, c *pawl.Client) *pawl.Lease {
	t.Helper()
	other, _ := w.client(nil)
	held := must(other.Mutex("x").Lock(background))(t)
	lock := func(ctx context.Context, got chan<- *pawl.Lease) {
		go func() {
			l, _ := c.Mutex("x").Lock(ctx)
			got <- l
		}()
		synctest.Wait()
	}
	ctxBefore, cancelBefore := context.WithCancel(background)
	ctxBehind, cancelBehind := context.WithCancel(background)
	got, gaveUp := make(chan *pawl.Lease, 1), make(chan *pawl.Lease, 4)
	lock(ctxBefore, gaveUp)
	lock(background, got)
	for range 3 {
		lock(ctxBehind, gaveUp)
	}
	cancelBefore()
	synctest.Wait()
	noError(t, held.Release(background))
	lease := <-got
	cancelBehind()
	for range 4 {
		if l := <-gaveUp; l != nil {
			t.Fatal("another waiter was granted the lock")
		}
	}
	return lease
}
