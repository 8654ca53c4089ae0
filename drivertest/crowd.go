package drivertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// section is a section that a lock protects. It adds up the weights inside, and checks
// the fences of exclusive visitors.
type section struct {
	limit           int64
	inside          atomic.Int64
	visits          atomic.Int64
	counter         atomic.Int64  // the exclusive visitors read it, and a moment later write it
	exclusiveVisits atomic.Int64  // the number of exclusive visitors
	lastFence       atomic.Uint64 // the fence of the last of them
	violations      atomic.Int64
}

func (s *section) visit(c driver.Claim, g driver.Grant) {
	weight := int64(c.Weight)
	if s.inside.Add(weight) > s.limit {
		s.violations.Add(1)
	}
	n := s.counter.Load()
	time.Sleep(50 * time.Microsecond) // otherwise two visitors would seldom meet
	if c.Weight == driver.Exclusive {
		s.counter.Store(n + 1)
		s.exclusiveVisits.Add(1)
		if s.lastFence.Swap(g.Fence) >= g.Fence {
			s.violations.Add(1)
		}
	}
	s.visits.Add(1)
	s.inside.Add(-weight)
}

func (s *section) check(k *kit, visits int64) {
	k.Helper()
	if n := s.violations.Load(); n > 0 {
		k.Errorf("VIOLATION: %d of %d visitors were inside with excluded ones, or had an old fence", n, s.visits.Load())
	}
	if got, want := s.counter.Load(), s.exclusiveVisits.Load(); got != want {
		k.Errorf("the counter is %d after %d increments", got, want)
	}
	if n := s.visits.Load(); n != visits {
		k.Errorf("%d visits, want %d", n, visits)
	}
}

// runWorkers runs f in each worker, rounds times. Half of the workers use each client.
func (k *kit) runWorkers(workers, rounds int, f func(*worker) error) {
	k.Helper()
	var grantSignals sync.Map // the channels of the waiting workers, by token
	notify := func(s driver.Signal) {
		if granted, ok := grantSignals.Load(s.Token); ok {
			select {
			case granted.(chan struct{}) <- struct{}{}:
			default:
			}
		}
	}
	if k.suite.canSignal {
		for _, d := range []*client{k.a, k.b} {
			k.Cleanup(d.Driver.(driver.Signaler).Listen(notify))
		}
	}
	var all sync.WaitGroup
	for i := range workers {
		w := &worker{k: k, d: []*client{k.a, k.b}[i%2], grantSignals: &grantSignals}
		all.Go(func() {
			for range rounds {
				if err := f(w); err != nil {
					k.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// worker is one goroutine of runWorkers.
type worker struct {
	k            *kit
	d            *client
	grantSignals *sync.Map
}

// enter repeats its claim until it is granted, visits the section, and releases. Like a
// waiter, it repeats the claim after a grant signal, or after a growing pause. The
// outcome does not depend on the timing.
func (w *worker) enter(s *section, c driver.Claim) error {
	granted := make(chan struct{}, 1)
	w.grantSignals.Store(c.Token, granted)
	defer w.grantSignals.Delete(c.Token)
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		g, err := w.d.Acquire(w.k.ctx, c)
		if err == nil {
			s.visit(c, g)
			return w.d.Release(w.k.ctx, lease(c))
		}
		if !errors.Is(err, driver.ErrHeld) {
			return err
		}
		select {
		case <-granted:
		case <-time.After(pause):
		case <-w.k.ctx.Done():
			return context.Cause(w.k.ctx)
		}
	}
}
