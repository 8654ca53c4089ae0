package pawl_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

// A dice is a source of random numbers that goroutines share.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

// oneIn returns true once in n times.
func (d *dice) oneIn(n int) bool { return d.intN(n) == 0 }

func (d *dice) intN(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// randomTime returns a time of up to longest, and usually much less.
func (d *dice) randomTime(longest time.Duration) time.Duration {
	return longest >> d.intN(10) * time.Duration(d.intN(1000)) / 1000
}

// request makes a request fail, hang, panic or end its goroutine, or loses the request or
// its reply.
func (h *hostileRun) request(ctx context.Context, op string, do func() error) error {
	if op != "acquire" && op != "renew" && op != "release" {
		return do()
	}
	if err := sleep(ctx, h.randomTime(500*time.Millisecond)); err != nil {
		return err
	}
	crash := func() {
		if ctx.Value(callKey{}) != nil && h.oneIn(40) {
			if h.oneIn(2) {
				runtime.Goexit()
			}
			panic("hostile")
		}
	}
	crash()
	if h.oneIn(12) {
		return errNet
	}
	err := do()
	crash()
	switch {
	case h.oneIn(12):
		return errNet
	case h.oneIn(30):
		<-ctx.Done()
		return ctx.Err()
	}
	if err := sleep(ctx, h.randomTime(500*time.Millisecond)); err != nil {
		return err
	}
	return err
}

// signal delivers a signal at once, late or never.
func (h *hostileRun) signal(notify func()) {
	switch {
	case h.oneIn(5):
	case h.oneIn(2):
		notify()
	default:
		time.AfterFunc(h.randomTime(5*time.Second), notify)
	}
}

// callKey marks the ctx of a user's call, which can recover from a panic.
type callKey struct{}

// hostileRun is a run of a client over a hostile driver, with its users and a rival.
type hostileRun struct {
	*testing.T
	*dice
	w      *world
	c      *pawl.Client
	events *eventRecorder
	done   chan struct{} // closed after the client was closed

	forgetful bool // some leases are not released

	mu      sync.Mutex
	answers map[uint64]error // the errors of Do and TryDo, by the number of the claim
}

// observer records all events, and then may fail: it panics where a caller can recover,
// and otherwise ends the goroutine.
func (h *hostileRun) observer() *pawl.Observer {
	h.events.afterEach = func(kind string) {
		time.Sleep(h.randomTime(50 * time.Millisecond))
		if h.oneIn(30) {
			// The client's own goroutines may report these two. A panic there ends the
			// program.
			if kind == "lost" || kind == "failed" || h.oneIn(2) {
				runtime.Goexit()
			}
			panic("hostile observer")
		}
	}
	o := h.events.observer()
	record := o.Acquired
	o.Acquired = func(e pawl.AcquiredEvent) {
		if claim, ok := e.Ctx.Value(claimKey{}).(*uint64); ok {
			*claim = e.Claim
		}
		time.Sleep(h.randomTime(time.Second)) // meanwhile the lease may end
		record(e)
	}
	return o
}

func (h *hostileRun) run() {
	var users sync.WaitGroup
	for range 8 {
		users.Go(func() {
			for range 12 {
				inGoroutine(h.useOnce)
				time.Sleep(h.randomTime(time.Second))
			}
		})
	}
	rival, _ := h.w.client(nil)
	users.Go(func() { h.runRival(rival) })
	time.Sleep(h.randomTime(40 * time.Second))
	h.end()
	close(h.done)
	users.Wait()
	time.Sleep(time.Minute)
	synctest.Wait()
	h.events.checkBalance(h.T)
	for _, e := range h.events.all() {
		err, ok := h.answers[e.Claim]
		if ok && (e.kind == "lost" && !errors.Is(err, pawl.ErrLost) || e.kind == "released" && errors.Is(err, pawl.ErrLost)) {
			h.Errorf("claim %x of %q was %s, and Do returned %v", e.Claim, e.Name, e.kind, err)
		}
	}
	h.w.wantFree(names...)
	wantNothingLeft(h.T, h.c)
}

// end closes the client by Close or Shutdown, or by several calls at once.
func (h *hostileRun) end() {
	var ends sync.WaitGroup
	for range 1 + h.intN(3) {
		ctx, cancel := context.WithTimeout(background, h.randomTime(20*time.Second))
		defer cancel()
		end := h.c.CloseWithin
		if h.oneIn(2) {
			end = h.c.Shutdown
		}
		ends.Go(func() { _ = end(ctx) })
	}
	ends.Wait()
	if h.c.Close() != nil {
		return // the client reported the failure
	}
	h.events.checkBalance(h.T)
	for _, name := range names {
		e := h.w.entry(name)
		for _, x := range e.Holders {
			if x.Owner.Client == "hostile" && !h.forgetful {
				h.Errorf("%q is still held: %+v", name, x)
			}
		}
		for _, x := range e.Waiters {
			if x.Owner.Client == "hostile" {
				h.Errorf("%q is still waited for: %+v", name, x)
			}
		}
	}
}

// useOnce makes one call of a user, and ends the lease that it got.
func (h *hostileRun) useOnce() {
	ctx, cancel := context.WithTimeout(context.WithValue(background, callKey{}, true), h.randomTime(20*time.Second))
	defer cancel()
	name := names[h.intN(len(names))]
	m, rw := h.c.Mutex(name), h.c.RWMutex(name)
	work := func(ctx context.Context) error {
		_ = sleep(ctx, h.randomTime(10*time.Second))
		switch h.intN(20) {
		case 0:
			panic("hostile function")
		case 1:
			runtime.Goexit()
		}
		return nil
	}
	if h.oneIn(3) {
		do := []func(context.Context, func(context.Context) error) error{
			m.Do, rw.RDo, h.c.Semaphore(name, 3).Do,
			func(ctx context.Context, f func(context.Context) error) error { return errOf(m.TryDo(ctx, f)) },
		}[h.intN(4)]
		var claim uint64
		err := do(context.WithValue(ctx, claimKey{}, &claim), work)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.answers[claim] = err
		return
	}
	lock := []func(context.Context) (*pawl.Lease, error){m.Lock, m.TryLock, m.ForceLock, rw.RLock, rw.TryRLock}[h.intN(5)]
	lease, err := lock(ctx)
	if err != nil {
		return
	}
	if h.forgetful && h.oneIn(10) {
		return // Close ends the lease, or it expires
	}
	_ = work(lease.Context())
	var both sync.WaitGroup
	for range 1 + h.intN(2) {
		both.Go(func() { inGoroutine(func() { _ = lease.Release(ctx) }) })
	}
	both.Wait()
}

// runRival breaks, forces and tries locks with another client until the client is closed.
func (h *hostileRun) runRival(c *pawl.Client) {
	for {
		select {
		case <-h.done:
			return
		case <-time.After(h.randomTime(5 * time.Second)):
		}
		name := names[h.intN(len(names))]
		switch h.intN(3) {
		case 0:
			if e, err := c.Inspect(background, name); err == nil && len(e.Holders) > 0 {
				_ = c.Break(background, name, e.Holders[0].Fence, &pawl.BreakOptions{Delay: h.randomTime(time.Second)})
			}
		case 1:
			if l, err := c.Mutex(name).ForceLock(background); err == nil {
				_ = l.Release(background)
			}
		default:
			if l, err := c.Mutex(name).TryLock(background); err == nil {
				time.Sleep(h.randomTime(time.Second))
				_ = l.Release(background)
			}
		}
	}
}

func newHostileRun(t *testing.T, w *world, seed uint64) *hostileRun {
	h := &hostileRun{
		T: t, dice: &dice{rng: rand.New(rand.NewPCG(seed, 7))}, w: w, events: &eventRecorder{}, done: make(chan struct{}), answers: map[uint64]error{}, forgetful: seed%2 == 0,
	}
	net := w.network()
	net.around, net.signal = h.request, h.signal
	h.c = w.clientOf(net, &pawl.Options{ID: "hostile", Observer: h.observer(), TTL: 4 * time.Second, RetryFor: 5 * time.Second})
	return h
}

var names = []string{"a", "b", "c"}

// claimKey is the key of the ctx value in which Acquired stores the number of the claim.
type claimKey struct{}
