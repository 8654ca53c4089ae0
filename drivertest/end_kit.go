package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// slowClient is a client whose requests can be delayed on their way.
type slowClient struct {
	*client
	network *Network
}

// openSlow opens a slowClient and uses it once, because a driver may have to learn the
// backend's time.
func (k *kit) openSlow() *slowClient {
	k.Helper()
	n := newNetwork(k.T)
	d := k.suite.OpenThrough(k.T, n)
	k.Cleanup(func() {
		if err := d.Close(); err != nil {
			k.Errorf("Close: %v", err)
		}
	})
	s := &slowClient{&client{Driver: d, k: k}, n}
	c := k.mutex(named(k.name + "/first"))
	s.wantGranted(c)
	s.mustRelease(c)
	if !n.wasUsed() {
		k.Fatal("the client of OpenThrough does not use the network: it must dial with n.Dial, or find its server at n.Addr(address)")
	}
	return s
}

// useOnce acquires and releases a name. A client that caches the state of a name then
// sends its next claim at once; another client reads the name first.
func (s *slowClient) useOnce(name string) {
	s.k.Helper()
	c := s.k.mutex(named(name))
	s.wantGranted(c)
	s.mustRelease(c)
}

// delayRequests delays the requests sent from now on, until letArrive is called, or the
// subtest ends.
func (s *slowClient) delayRequests() (letArrive func()) {
	letArrive = s.network.delayRequests()
	s.k.Cleanup(letArrive)
	return letArrive
}

// call is a call of a driver's method, in a goroutine.
type call struct {
	k     *kit
	what  string
	claim driver.Claim
	do    func(ctx context.Context) error
	done  chan struct{} // closed when the call has returned
	err   error         // err and ended are written before done is closed
	ended time.Time
}

func (s *slowClient) newCall(what string, do func(ctx context.Context) error) *call {
	return &call{k: s.k, what: what, do: do, done: make(chan struct{})}
}

func (s *slowClient) acquireCall(c driver.Claim) *call {
	a := s.newCall("Acquire", func(ctx context.Context) error {
		_, err := s.Acquire(ctx, c)
		return err
	})
	a.claim = c
	return a
}

func (s *slowClient) releaseWithEndCall(c driver.Claim) *call {
	return s.newCall("Release", func(ctx context.Context) error {
		return s.Release(ctx, driver.LeaseRef{Name: c.Name, Token: c.Token, HasEnd: true})
	})
}

// callOfEachMethod returns a call of each method, for name, and for held, which must be
// held. fence is for Break.
func (s *slowClient) callOfEachMethod(name string, held driver.Claim, fence uint64) []*call {
	calls := []*call{
		s.acquireCall(s.k.mutex(named(name))), s.acquireCall(s.k.mutex(named(held.Name), queue(long))), s.acquireCall(s.k.mutex(named(name), force)),
		s.newCall("Renew", func(ctx context.Context) error {
			answers, err := s.Renew(ctx, []driver.LeaseRef{lease(held)})
			return errors.Join(append(answers, err)...)
		}),
		s.newCall("Release", func(ctx context.Context) error { return s.Release(ctx, lease(s.k.mutex(named(name)))) }),
		s.releaseWithEndCall(s.k.mutex(named(name))),
		s.newCall("Inspect", func(ctx context.Context) error { _, err := s.Inspect(ctx, held.Name); return err }),
	}
	if s.k.suite.canBreak {
		calls = append(calls, s.newCall("Break", func(ctx context.Context) error {
			return s.Driver.(driver.LeaseBreaker).Break(ctx, held.Name, fence, 0, driver.Owner{})
		}))
	}
	if s.k.suite.canList {
		calls = append(calls, s.newCall("List", func(ctx context.Context) error { return s.k.listErr(ctx, s.client) }))
	}
	return calls
}

func (c *call) begin(ctx context.Context) {
	go func() {
		defer close(c.done)
		c.err = c.do(ctx)
		c.ended = time.Now()
	}()
}

// hasReturned reports whether the call has returned.
func (c *call) hasReturned() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// wait waits until the call has returned, and returns its error.
func (c *call) wait() error {
	c.k.Helper()
	if _, ok := waitFor(c.k, c.done); !ok {
		c.k.Fatalf("%s does not return", c.what)
	}
	return c.err
}

// ctxEnd is a way for a ctx to end.
type ctxEnd struct {
	name   string
	cancel bool // it is canceled before its deadline
}

func (k *kit) ctxEnds() []ctxEnd { return []ctxEnd{{"deadline", false}, {"cancelled", true}} }

// lateCtxEnds returns the ctxEnds for a test that waits for the end of requests. The end
// is the same for both, so -short tests only the canceled ctx.
func (k *kit) lateCtxEnds() []ctxEnd {
	if k.suite.short {
		return k.ctxEnds()[1:]
	}
	return k.ctxEnds()
}

// wantPromptReturn makes calls with a ctx that ends while the requests are delayed. The
// calls must return soon after that.
func (k *kit) wantPromptReturn(w ctxEnd, calls ...*call) {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.ctx, k.shortTimeout())
	defer cancel()
	for _, c := range calls {
		c.begin(ctx)
	}
	if w.cancel {
		time.AfterFunc(k.shortTimeout()/4, cancel)
	}
	ended := k.awaitEnd(ctx)
	limit := time.NewTimer(k.returnLimit())
	defer limit.Stop()
	for _, c := range calls {
		select {
		case <-c.done:
			if after := c.ended.Sub(ended); after > k.returnLimit() {
				k.Errorf("%s returned %v after its ctx had ended (%s)", c.what, after, w.name)
			}
			k.wantCtxError(c.what, c.err)
		case <-limit.C:
			k.ownWaits.Add(int64(k.returnLimit())) // this wait does not count as late
			k.Fatalf("%s has not returned %v after its ctx had ended (%s): each request has to end with its ctx", c.what, k.returnLimit(), w.name)
		}
	}
}

// awaitEnd waits for the end of ctx, and returns its time.
func (k *kit) awaitEnd(ctx context.Context) time.Time {
	began := time.Now()
	<-ctx.Done()
	k.ownWaits.Add(int64(min(time.Since(began), k.shortTimeout())))
	return time.Now()
}

// wantCtxError requires the ctx's error or ErrUnavailable from a call whose ctx ended
// before the answer.
func (k *kit) wantCtxError(what string, err error) {
	k.Helper()
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, driver.ErrUnavailable) ||
		errors.Is(err, driver.ErrHeld) || errors.Is(err, driver.ErrNoSuchLease) {
		k.Errorf("%s: %v; want the error of the ctx, because it ended first", what, err)
	}
}

// shortTimeout returns the timeout of a ctx that has to end during its request.
func (k *kit) shortTimeout() time.Duration {
	if k.suite.Clock != nil {
		return 150 * time.Millisecond // in real time, which decides the end of a ctx
	}
	return k.unit / 2
}

// returnLimit returns the time in which a call has to return after the end of its ctx.
func (k *kit) returnLimit() time.Duration {
	if k.suite.Clock != nil {
		return k.suite.Patience / 5
	}
	return k.unit / 4
}

// awaitArrival waits until the delayed requests have arrived.
func (k *kit) awaitArrival() {
	if k.suite.Clock != nil {
		time.Sleep(5 * time.Millisecond)
		return
	}
	k.sleep(k.unit / 4)
}

// releaseUnknown releases a claim whose outcome is unknown.
func (k *kit) releaseUnknown(d *client, c driver.Claim) {
	k.Helper()
	if err := d.Release(k.ctx, lease(c)); err != nil && !errors.Is(err, driver.ErrNoSuchLease) {
		k.Errorf("Release: %v", err)
	}
}

func (k *kit) wantFree(name string) { k.b.wantFree(name) }

func (c *client) wantFree(name string) {
	c.k.Helper()
	if e := c.entry(name); len(e.Holders)+len(e.Waiters) > 0 {
		c.k.Errorf("%+v; want no holder and no waiter", e)
	}
}

// wantOneHolder requires one lease of the name, with this fence, and no waiter.
func (k *kit) wantOneHolder(name string, fence uint64) {
	k.Helper()
	if e := k.b.entry(name); len(e.Holders) != 1 || e.Holders[0].Fence != fence || len(e.Waiters) > 0 {
		k.Errorf("%+v; want one lease with the fence %d, and no waiter", e, fence)
	}
}

// pause sleeps in real time, which does not count as late.
func (k *kit) pause(d time.Duration) { k.ownWaits.Add(int64(d)); time.Sleep(d) }
