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

// A dice is a source of chances that goroutines share.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

// one is true once in n times.
func (d *dice) one(n int) bool { return d.n(n) == 0 }

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// span is a time of up to most, and usually much less.
func (d *dice) span(most time.Duration) time.Duration {
	return most >> d.n(10) * time.Duration(d.n(1000)) / 1000
}

// step is a request to a driver that fails, hangs, panics, ends goroutines, and loses
// requests and replies.
func (h *hostility) step(ctx context.Context, op string, do func() error) error {
	if op != "acquire" && op != "renew" && op != "release" {
		return do()
	}
	if err := sleep(ctx, h.span(500*time.Millisecond)); err != nil {
		return err
	}
	stumble := func() {
		if ctx.Value(callKey{}) != nil && h.one(40) {
			if h.one(2) {
				runtime.Goexit()
			}
			panic("hostile")
		}
	}
	stumble()
	if h.one(12) {
		return errNet
	}
	err := do()
	stumble()
	switch {
	case h.one(12):
		return errNet
	case h.one(30):
		<-ctx.Done()
		return ctx.Err()
	}
	if err := sleep(ctx, h.span(500*time.Millisecond)); err != nil {
		return err
	}
	return err
}

// signal delivers a signal at once, late or not.
func (h *hostility) signal(tell func()) {
	switch {
	case h.one(5):
	case h.one(2):
		tell()
	default:
		time.AfterFunc(h.span(5*time.Second), tell)
	}
}

// callKey marks the ctx of a call by a user, who can recover from a panic.
type callKey struct{}

// hostility is one run: a client over a hostile driver, its users, and a rival.
type hostility struct {
	*testing.T
	*dice
	w     *world
	c     *pawl.Client
	heard *listener
	done  chan struct{} // closed when the client is

	forgetful bool // some leases are not released

	mu      sync.Mutex
	answers map[uint64]error // of Do and its like, by the claim
}

// observer receives all events, and then may stumble: with a panic where a caller can
// recover, and otherwise by ending the goroutine.
func (h *hostility) observer() *pawl.Observer {
	h.heard.then = func(what string) {
		time.Sleep(h.span(50 * time.Millisecond))
		if h.one(30) {
			// The client's own goroutines may call these two: there a panic ends all.
			if what == "lost" || what == "trouble" || h.one(2) {
				runtime.Goexit()
			}
			panic("hostile observer")
		}
	}
	o := h.heard.observer()
	hear := o.Acquired
	o.Acquired = func(e pawl.AcquiredEvent) {
		if claim, ok := e.Ctx.Value(claimKey{}).(*uint64); ok {
			*claim = e.Claim
		}
		time.Sleep(h.span(time.Second)) // its end may be quicker
		hear(e)
	}
	return o
}

func (h *hostility) run() {
	var users sync.WaitGroup
	for range 8 {
		users.Go(func() {
			for range 12 {
				inGoroutine(h.use)
				time.Sleep(h.span(time.Second))
			}
		})
	}
	rival, _ := h.w.client(nil)
	users.Go(func() { h.rival(rival) })
	time.Sleep(h.span(40 * time.Second))
	h.end()
	close(h.done)
	users.Wait()
	time.Sleep(time.Minute)
	synctest.Wait()
	h.heard.balanced(h.T)
	for _, e := range h.heard.heard() {
		err, ok := h.answers[e.Claim]
		if ok && (e.what == "lost" && !errors.Is(err, pawl.ErrLost) || e.what == "released" && errors.Is(err, pawl.ErrLost)) {
			h.Errorf("claim %x of %q was %s, and Do said %v", e.Claim, e.Name, e.what, err)
		}
	}
	for _, name := range names {
		h.w.wantFree(name)
	}
	leavesNothing(h.T, h.c)
}

// end closes the client, in one of the possible ways or in several at once.
func (h *hostility) end() {
	var ends sync.WaitGroup
	for range 1 + h.n(3) {
		ctx, cancel := context.WithTimeout(background, h.span(20*time.Second))
		defer cancel()
		end := h.c.CloseWithin
		if h.one(2) {
			end = h.c.Shutdown
		}
		ends.Go(func() { _ = end(ctx) })
	}
	ends.Wait()
	if h.c.Close() != nil {
		return // and it said so
	}
	h.heard.balanced(h.T)
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

// use is one thing that a user does.
func (h *hostility) use() {
	ctx, cancel := context.WithTimeout(context.WithValue(background, callKey{}, true), h.span(20*time.Second))
	defer cancel()
	name := names[h.n(len(names))]
	m, rw := h.c.Mutex(name), h.c.RWMutex(name)
	work := func(ctx context.Context) error {
		_ = sleep(ctx, h.span(10*time.Second))
		switch h.n(20) {
		case 0:
			panic("hostile function")
		case 1:
			runtime.Goexit()
		}
		return nil
	}
	if h.one(3) {
		do := []func(context.Context, func(context.Context) error) error{
			m.Do, rw.RDo, h.c.Semaphore(name, 3).Do,
			func(ctx context.Context, f func(context.Context) error) error { _, err := m.TryDo(ctx, f); return err },
		}[h.n(4)]
		var claim uint64
		err := do(context.WithValue(ctx, claimKey{}, &claim), work)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.answers[claim] = err
		return
	}
	lock := []func(context.Context) (*pawl.Lease, error){m.Lock, m.TryLock, m.ForceLock, rw.RLock, rw.TryRLock}[h.n(5)]
	lease, err := lock(ctx)
	if err != nil {
		return
	}
	if h.forgetful && h.one(10) {
		return // Close ends it, or it ends by itself
	}
	_ = work(lease.Context())
	var both sync.WaitGroup
	for range 1 + h.n(2) {
		both.Go(func() { inGoroutine(func() { _ = lease.Release(ctx) }) })
	}
	both.Wait()
}

// rival is another client that breaks, forces and tries locks until the client is closed.
func (h *hostility) rival(c *pawl.Client) {
	for {
		select {
		case <-h.done:
			return
		case <-time.After(h.span(5 * time.Second)):
		}
		name := names[h.n(len(names))]
		switch h.n(3) {
		case 0:
			if e, err := c.Inspect(background, name); err == nil && len(e.Holders) > 0 {
				_ = c.Break(background, name, e.Holders[0].Fence, &pawl.BreakOptions{Delay: h.span(time.Second)})
			}
		case 1:
			if l, err := c.Mutex(name).ForceLock(background); err == nil {
				_ = l.Release(background)
			}
		default:
			if l, err := c.Mutex(name).TryLock(background); err == nil {
				time.Sleep(h.span(time.Second))
				_ = l.Release(background)
			}
		}
	}
}

func newHostility(t *testing.T, w *world, seed uint64) *hostility {
	h := &hostility{
		T: t, dice: &dice{rng: rand.New(rand.NewPCG(seed, 7))}, w: w, heard: &listener{}, done: make(chan struct{}), answers: map[uint64]error{}, forgetful: seed%2 == 0,
	}
	net := w.faulty()
	net.around, net.signal = h.step, h.signal
	h.c = w.clientOf(net, &pawl.Options{ID: "hostile", Observer: h.observer(), TTL: 4 * time.Second, RetryFor: 5 * time.Second})
	return h
}

var names = []string{"a", "b", "c"}

// claimKey is the key under which the ctx of a call has a place for the number of its
// claim.
type claimKey struct{}
