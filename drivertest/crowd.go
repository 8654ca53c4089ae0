package drivertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// section is a section that a lock protects: it knows the weight inside, and the fence of
// the last exclusive visitor.
type section struct {
	limit   int64
	inside  atomic.Int64
	passed  atomic.Int64
	counter atomic.Int64  // the exclusive visitors read it, and a moment later write it
	alone   atomic.Int64  // how many exclusive visitors there were
	last    atomic.Uint64 // fence of the last of them
	faults  atomic.Int64
}

func (s *section) visit(c driver.Claim, g driver.Grant) {
	weight := int64(c.Weight)
	if s.inside.Add(weight) > s.limit {
		s.faults.Add(1)
	}
	n := s.counter.Load()
	time.Sleep(50 * time.Microsecond) // otherwise no visitor would stay long enough to meet another
	if c.Weight == driver.Exclusive {
		s.counter.Store(n + 1)
		s.alone.Add(1)
		if s.last.Swap(g.Fence) >= g.Fence {
			s.faults.Add(1)
		}
	}
	s.passed.Add(1)
	s.inside.Add(-weight)
}

func (s *section) check(k *kit, visits int64) {
	k.Helper()
	if n := s.faults.Load(); n > 0 {
		k.Errorf("VIOLATION: %d of %d visitors met others who should not have been there, or had an old fence", n, s.passed.Load())
	}
	if got, want := s.counter.Load(), s.alone.Load(); got != want {
		k.Errorf("the counter stands at %d after %d increments", got, want)
	}
	if n := s.passed.Load(); n != visits {
		k.Errorf("%d visits, want %d", n, visits)
	}
}

// crowd runs f rounds times in each of the workers, half of them on each client.
func (k *kit) runWorkers(workers, rounds int, f func(*worker) error) {
	k.Helper()
	var grantSignals sync.Map // of the waiting workers, by token
	notify := func(s driver.Signal) {
		if granted, ok := grantSignals.Load(s.Token); ok {
			select {
			case granted.(chan struct{}) <- struct{}{}:
			default:
			}
		}
	}
	if k.s.canSignal {
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

// worker is one of a crowd.
type worker struct {
	k            *kit
	d            *client
	grantSignals *sync.Map
}

// enter asks until the claim is granted, visits the section, and releases. Like a waiter,
// it asks again when its grant is signalled, or after a pause that grows. The outcome
// does not depend on the timing.
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
