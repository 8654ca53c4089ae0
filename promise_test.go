package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// The time of a request is bounded by the shortest lease in it, which long ones should not have to share.
func TestShortLeasesAndLongOnesDoNotHarmEachOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, err := pawl.New(&slowBatch{&faulty{Driver: w.memory.Driver()}}, nil)
		noError(t, err)
		defer c.Close(background)
		var long []*pawl.Lease
		for i := range 1000 {
			long = append(long, must(t)(c.Mutex(fmt.Sprint("long", i)).Lock(background)))
		}
		lost := 0
		for began := time.Now(); time.Since(began) < time.Minute; {
			short := must(t)(c.Mutex("short", pawl.WithTTL(200*time.Millisecond)).Lock(background))
			time.Sleep(time.Second)
			if short.Release(background) != nil {
				lost++
			}
		}
		for _, l := range long {
			if l.Err() != nil {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%d leases were lost", lost)
		}
	})
}

func TestRenewalsAfterAPauseDoNotBurst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var slept atomic.Int64
		f := &faulty{Driver: w.memory.Driver()}
		c := pawl.NewAsleep(f, nil, func() time.Duration { return time.Duration(slept.Load()) })
		defer c.Close(background)
		lease := must(t)(c.Mutex("x").Lock(background))
		slept.Store(int64(20 * time.Second)) // two renewals were missed
		time.Sleep(5 * time.Second)
		noError(t, lease.Err())
		if n := f.count("renew"); n != 1 {
			t.Errorf("%d renewals", n)
		}
	})
}

func TestLookSignalMakesEveryWaiterAsk(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, f := w.client(nil)
		f.noSignals = true
		held := must(t)(a.Mutex("x").Lock(background))
		got := make(chan *pawl.Lease, 1)
		go func() { got <- must(t)(b.Mutex("x").Lock(background)) }()
		synctest.Wait()
		noError(t, held.Release(background))
		f.hear(driver.Signal{Kind: driver.SignalLook})
		synctest.Wait()
		select {
		case <-got:
		default:
			t.Error("it did not ask")
		}
	})
}

// Each claim has an identity of its own: one lock value may be held several times, and a handle that is over
// does not touch the others.
func TestOneProcessHoldsSeveralPermitsEachByItself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(nil)
		s := c.Semaphore("x", 2)
		first, second := must(t)(s.Acquire(background, 1)), must(t)(s.Acquire(background, 1))
		noError(t, first.Release(background))
		third := must(t)(s.Acquire(background, 1))
		noError(t, first.Release(background)) // again
		if e := w.entry("x"); len(e.Holders) != 2 || e.Holders[0].Fence != second.Fence() || e.Holders[1].Fence != third.Fence() {
			t.Errorf("%+v", e)
		}
		noError(t, errors.Join(second.Err(), third.Err()))
	})
}

func TestLeasesCostNoGoroutines(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(nil)
		before := runtime.NumGoroutine()
		for i := range 5000 {
			must(t)(c.Mutex(fmt.Sprint("x", i)).Lock(background))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 5 {
			t.Errorf("%d goroutines for 5000 leases", n)
		}
		if c.Leases() != 5000 {
			t.Errorf("%d leases are left", c.Leases())
		}
	})
}

func TestThousandWaitersAreServedInOrderForTwoRequestsEach(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, f := w.client(&pawl.Options{LocalHandoff: -1})
		held := must(t)(a.Mutex("x").Lock(background))
		var mu sync.Mutex
		served := 0
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				l := must(t)(b.Mutex("x").Lock(background))
				mu.Lock()
				if served != i {
					t.Errorf("%d was served as the %dth", i, served)
				}
				served++
				mu.Unlock()
				noError(t, l.Release(background))
			})
			synctest.Wait()
		}
		noError(t, held.Release(background))
		wg.Wait()
		if n := f.count("acquire") + f.count("release") + f.count("renew"); n > 2*1000+10 {
			t.Errorf("%d requests", n)
		}
		w.free("x")
	})
}

// ctx may end before a claim is sent, on its way there, on the way back, in either queue, or just after.
func TestClaimThatIsCancelledAtAnyMomentLeavesNothing(t *testing.T) {
	for after := time.Duration(0); after < 60*time.Millisecond; after += 500 * time.Microsecond {
		inWorld(t, func(t *testing.T, w *world) {
			a, _ := w.client(nil)
			b, f := w.client(nil)
			f.latency = 10 * time.Millisecond
			held := must(t)(a.Mutex("x").Lock(background))
			time.AfterFunc(25*time.Millisecond, func() { _ = held.Release(background) })
			ctx, cancel := context.WithCancel(background)
			time.AfterFunc(after, cancel)
			var wg sync.WaitGroup
			for i := range 3 {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					l, err := b.Mutex("x").Lock(ctx)
					if err == nil {
						err = l.Release(background)
					} else if err == context.Canceled {
						err = nil
					}
					noError(t, err)
				})
			}
			time.Sleep(3 * time.Millisecond)
			last := must(t)(b.Mutex("x").Lock(background))
			noError(t, last.Release(background))
			wg.Wait()
			time.Sleep(100 * time.Millisecond)
			w.free("x")
			if n := b.Gates() + b.Inboxes() + b.Leases(); n > 0 {
				t.Errorf("cancelled after %v: %d things were left behind", after, n)
			}
		})
	}
}
