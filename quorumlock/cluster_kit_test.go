package quorumlock_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/quorumlock"
)

// Helpers that the tests of several packages share.
var noError, skipIfShort, lease = basictest.NoError, basictest.SkipIfShort, servertest.Lease

// asDriver converts the driver of New to its concrete type.
var asDriver = servertest.As[*quorumlock.Driver]

// A server is one node's backend: memory with a clock that may be skewed. It can lose its
// data.
type server struct {
	mu           sync.Mutex
	memory       *memlock.Memory
	skew         time.Duration
	afterRequest func() // called after each request, if not nil
}

func newServer(skew time.Duration) *server {
	s := &server{skew: skew}
	s.wipe()
	return s
}

func (s *server) wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory = memlock.NewMemory(&memlock.Options{Now: func() time.Time { return time.Now().Add(s.skew) }})
}

var errDown = errors.New("connection refused")

// A line is one client's connection to a node. It can have faults.
type line struct {
	engine.Driver
	s             *server
	requestDelay  atomic.Int64 // nanoseconds until a request arrives
	answerDelay   atomic.Int64 // nanoseconds until its answer arrives
	down          atomic.Bool  // all requests are refused
	hung          atomic.Bool  // requests wait until hung is false
	silent        atomic.Bool  // the node handles requests, but their answers are lost
	ignoresCancel atomic.Bool  // a request does not end with its ctx
	calls         atomic.Int64
	refusal       error               // the answer to all requests, if not nil
	network       *drivertest.Network // the suite's network; if not nil, it delivers the requests
	clock         func() time.Time    // the node's clock, if network is set
	jitter        atomic.Int64        // the maximum of the random delay of each direction

	mu          sync.Mutex // protects the fields below
	stopped     bool       // requests stay in socket until resume, even if their callers give up
	socket      []func()   // handles the requests, in order
	delayedKind string     // the next request of this kind returns an error, and arrives on resume
}

func (l *line) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
}

func (l *line) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = false
	for _, handle := range l.socket {
		handle()
	}
	l.socket = nil
}

var errReset = errors.New("connection reset by peer")

// delayNext makes the next request of one kind, "acquire" or "release", arrive only when
// arrive is called.
func (l *line) delayNext(kind string) (arrive func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delayedKind = kind
	return l.resume
}

// keepIfDelayed keeps a request if delayNext chose it, and reports whether it did.
func (l *line) keepIfDelayed(kind string, handle func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.delayedKind != kind {
		return false
	}
	l.socket, l.delayedKind = append(l.socket, handle), ""
	return true
}

// withEnd returns f for a request that has an end: after the end, on the node's clock, it
// changes nothing.
func withEnd[T any](ctx context.Context, l *line, f func() (T, error)) func() (T, error) {
	now := time.Now
	if l.clock != nil {
		now = l.clock
	}
	end := now().Add(time.Until(driver.End(ctx)))
	return func() (v T, err error) {
		if !now().Before(end) {
			return v, &driver.Error{Backend: "memory", Op: "end", Err: context.DeadlineExceeded}
		}
		return f()
	}
}

// sendOverNetwork sends a request over the suite's network, which may delay it: the call
// returns when its ctx ends, but the request still arrives.
func sendOverNetwork[T any](ctx context.Context, l *line, f func() (T, error)) (none T, _ error) {
	if err := ctx.Err(); err != nil {
		return none, err
	}
	arrives, err := l.network.Send()
	if err != nil {
		return none, &driver.Error{Backend: "memory", Op: "send", Err: err}
	}
	serve := func() (T, error) {
		v, err := f()
		if lost := l.network.Answer(); lost != nil {
			return none, &driver.Error{Backend: "memory", Op: "receive", Err: lost}
		}
		return v, err
	}
	select {
	case <-arrives:
		return serve()
	default:
	}
	var late T
	var lateErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-arrives
		late, lateErr = serve()
	}()
	select {
	case <-done:
		return late, lateErr
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// handle runs f. If the line is stopped, it adds f to socket and waits until ctx ends.
func handle[T any](ctx context.Context, l *line, f func() (T, error)) (v T, err error) {
	done := make(chan struct{})
	l.mu.Lock()
	if !l.stopped {
		l.mu.Unlock()
		return f()
	}
	var late T
	var lateErr error
	l.socket = append(l.socket, func() {
		defer close(done)
		late, lateErr = f()
	})
	l.mu.Unlock()
	if l.ignoresCancel.Load() {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-done:
		return late, lateErr
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

func (s *server) connect(delay time.Duration) *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &line{Driver: engine.Full(s.memory.Driver()), s: s}
	l.requestDelay.Store(int64(delay / 2))
	l.answerDelay.Store(int64(delay - delay/2))
	return l
}

// send sends a request over the line.
func send[T any](ctx context.Context, l *line, f func() (T, error)) (T, error) {
	var none T
	l.calls.Add(1)
	if l.network != nil {
		return sendOverNetwork(ctx, l, f)
	}
	if l.refusal != nil {
		return none, l.refusal
	}
	if l.down.Load() {
		return none, &driver.Error{Backend: "memory", Op: "dial", Err: errDown}
	}
	if err := pause(ctx, l.delay(&l.requestDelay)); err != nil {
		return none, err
	}
	for l.hung.Load() {
		if err := pause(ctx, time.Millisecond); err != nil {
			return none, err // the request never arrives
		}
	}
	v, err := handle(ctx, l, f)
	if l.s.afterRequest != nil {
		l.s.afterRequest()
	}
	if l.silent.Load() {
		<-ctx.Done()
		return none, ctx.Err()
	}
	if err := pause(ctx, l.delay(&l.answerDelay)); err != nil {
		return none, err
	}
	return v, err
}

func (l *line) delay(direction *atomic.Int64) time.Duration {
	return time.Duration(direction.Load() + rand.Int64N(l.jitter.Load()+1))
}

func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	return backoff.Wait(ctx, d)
}

func (l *line) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	f := withEnd(ctx, l, func() (driver.Grant, error) { return l.Driver.Acquire(context.WithoutCancel(ctx), c) })
	if l.keepIfDelayed("acquire", func() { _, _ = f() }) {
		return driver.Grant{}, &driver.Error{Backend: "memory", Op: "acquire", Err: errReset}
	}
	return send(ctx, l, f)
}

func (l *line) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	f := func() ([]error, error) { return l.Driver.Renew(context.WithoutCancel(ctx), leases) }
	if slices.ContainsFunc(leases, func(x driver.LeaseRef) bool { return x.Value != nil }) {
		f = withEnd(ctx, l, f)
	}
	return send(ctx, l, f)
}

func (l *line) Release(ctx context.Context, ref driver.LeaseRef) error {
	f := func() (struct{}, error) { return struct{}{}, l.Driver.Release(context.WithoutCancel(ctx), ref) }
	if ref.HasEnd || ref.Value != nil {
		f = withEnd(ctx, l, f)
	}
	if l.keepIfDelayed("release", func() { _, _ = f() }) {
		return &driver.Error{Backend: "memory", Op: "release", Err: errReset}
	}
	_, err := send(ctx, l, f)
	return err
}

func (l *line) RaiseFence(ctx context.Context, ref driver.LeaseRef, fence uint64) (uint64, error) {
	return send(ctx, l, func() (uint64, error) { return l.Driver.RaiseFence(context.WithoutCancel(ctx), ref, fence) })
}

func (l *line) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	return send(ctx, l, func() (driver.Entry, error) { return l.Driver.Inspect(context.WithoutCancel(ctx), name) })
}

func (l *line) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	_, err := send(ctx, l, func() (struct{}, error) {
		return struct{}{}, l.Driver.Break(context.WithoutCancel(ctx), name, fence, delay, by)
	})
	return err
}

func (l *line) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		if _, err := l.Inspect(ctx, "any"); err != nil {
			yield(driver.Entry{}, err)
			return
		}
		l.Driver.List(ctx, prefix)(yield)
	}
}

// setDown makes these lines refuse all requests, or accept them again.
func setDown(isDown bool, lines ...*line) {
	for _, l := range lines {
		l.down.Store(isDown)
	}
}

// resetCalls makes these lines count their requests from 0.
func resetCalls(lines []*line) {
	for _, l := range lines {
		l.calls.Store(0)
	}
}

// inBubble runs a subtest in virtual time.
func inBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble.Test(t, f) })
}

// A cluster is the servers of all nodes.
type cluster []*server

func newCluster(n int) cluster {
	var c cluster
	for range n {
		c = append(c, newServer(0))
	}
	return c
}

// client connects to all servers with these delays. The last delay is for the rest, too.
func (servers cluster) client(t testing.TB, delays ...time.Duration) (*quorumlock.Driver, []*line) {
	t.Helper()
	return servers.clientWith(t, nil, delays...)
}

func (servers cluster) clientWith(t testing.TB, o *quorumlock.Options, delays ...time.Duration) (*quorumlock.Driver, []*line) {
	t.Helper()
	var nodes []driver.Driver
	var lines []*line
	for i, s := range servers {
		var delay time.Duration
		if len(delays) > 0 {
			delay = delays[min(i, len(delays)-1)]
		}
		l := s.connect(delay)
		lines, nodes = append(lines, l), append(nodes, l)
	}
	return quorumOf(t, o, nodes...), lines
}

// quorumOf opens a quorum of these nodes, until the end of the test.
func quorumOf(t testing.TB, o *quorumlock.Options, nodes ...driver.Driver) *quorumlock.Driver {
	t.Helper()
	d, err := asDriver(quorumlock.New(nodes, o))
	noError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// countPerServer returns the numbers of holders and of waiters of the name, on each
// server.
func (servers cluster) countPerServer(t testing.TB, name string) (holders, waiters []int) {
	t.Helper()
	for _, s := range servers {
		e, err := s.memory.Driver().Inspect(context.Background(), name)
		noError(t, err)
		holders, waiters = append(holders, len(e.Holders)), append(waiters, len(e.Waiters))
	}
	return holders, waiters
}

// wantNothingKept requires that no server has a holder or a waiter of the name.
func (servers cluster) wantNothingKept(t testing.TB, name string) {
	t.Helper()
	if holders, waiters := servers.countPerServer(t, name); sum(holders)+sum(waiters) != 0 {
		t.Errorf("on the nodes: %d holders, %d waiters; want none", holders, waiters)
	}
}

func mutex(name string) driver.Claim {
	return driver.Claim{Name: name, Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: 30 * time.Second}
}

// permitOf returns a claim for one permit of a pool.
func permitOf(of int) driver.Claim {
	c := mutex("pool")
	c.Weight, c.Limit = 1, of
	return c
}

func queued(c driver.Claim) driver.Claim {
	c.Queue, c.QueueTTL = true, 5*time.Second
	return c
}

func mustAcquire(t testing.TB, d driver.Driver, c driver.Claim) driver.Grant {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	g, err := d.Acquire(ctx, c)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return g
}

func mustRelease(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := d.Release(ctx, lease(c)); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

func mustRenew(t testing.TB, d driver.Driver, claims ...driver.Claim) {
	t.Helper()
	var leases []driver.LeaseRef
	for _, c := range claims {
		leases = append(leases, lease(c))
	}
	answers, err := d.Renew(context.Background(), leases)
	noError(t, errors.Join(append(answers, err)...))
}

func wantHeld(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if g, err := d.Acquire(ctx, c); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("Acquire = %+v, %v; want ErrHeld", g, err)
	}
}

func sum(ns []int) (n int) {
	for _, x := range ns {
		n += x
	}
	return n
}

// replace replaces the server by one without data, and connects these lines to it.
func (s *server) replace(lines ...*line) {
	s.wipe()
	for _, l := range lines {
		l.Driver = engine.Full(s.memory.Driver())
	}
}

// forgetClaim makes one node forget a lease or a place, and grant the name to the next.
func (s *server) forgetClaim(t testing.TB, c driver.Claim) {
	t.Helper()
	noError(t, s.memory.Driver().Release(context.Background(), lease(c)))
}

// takeAll empties a channel. It returns the signals of grants, and counts the others.
func takeAll(signals <-chan driver.Signal) (granted []driver.Signal, retries int) {
	for len(signals) > 0 {
		if s := <-signals; s.Kind == driver.SignalGranted {
			granted = append(granted, s)
		} else {
			retries++
		}
	}
	return granted, retries
}
