package pawl_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

func TestWaitersAreServedInTheOrderOfTheirArrival(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first, _ := w.client(nil)
		held := must(t)(first.Mutex("x").Lock(background))
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 20 {
			c, _ := w.client(nil) // a process each
			wg.Go(func() {
				lease := must(t)(c.Mutex("x").Lock(background))
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(20 * time.Millisecond)
				noError(t, lease.Release(background))
			})
			synctest.Wait()
		}
		if n := len(w.entry("x").Waiters); n != 20 {
			t.Errorf("%d wait in the backend, want 20", n)
		}
		began := time.Now()
		noError(t, held.Release(background))
		wg.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("order %v", order)
			}
		}
		if took := time.Since(began); took != 400*time.Millisecond {
			t.Errorf("20 hand-overs took %v besides their work", took-400*time.Millisecond)
		}
	})
}

func TestNoReaderPassesAWaitingWriter(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		reader := must(t)(a.RWMutex("x").RLock(background))
		done := make(chan *pawl.Lease)
		go func() { l, _ := b.RWMutex("x").Lock(background); done <- l }()
		synctest.Wait()
		_, err := a.RWMutex("x").TryRLock(background)
		isError(t, err, pawl.ErrHeld)
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		_, err = a.RWMutex("x").RLock(ctx) // in the local queue of another client, and still behind
		isError(t, err, pawl.ErrHeld, context.DeadlineExceeded)
		noError(t, reader.Release(background))
		noError(t, (<-done).Release(background))
	})
}

func TestReadersOfOneProcessDoNotWaitForEachOthersAnswers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		f.latency = 300 * time.Millisecond
		began := time.Now()
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() { must(t)(c.RWMutex("x").RLock(background)) })
		}
		wg.Wait()
		if took := time.Since(began); took > 301*time.Millisecond {
			t.Errorf("64 readers took %v on a link of 300 ms", took)
		}
	})
}

func TestSlowLinkWorksWithoutRetries(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		f.latency = 300 * time.Millisecond
		began := time.Now()
		lease := must(t)(c.Mutex("x").Lock(background))
		noError(t, lease.Release(background))
		if took := time.Since(began); took > 601*time.Millisecond || f.count("acquire")+f.count("release") != 2 {
			t.Errorf("a cycle took %v and %d requests", took, f.count("acquire")+f.count("release"))
		}
	})
}

func TestDeadlineOfAWaitSaysWhoHeldTheLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		must(t)(a.Mutex("x").Lock(background))
		for range 2 { // the second one waits behind the first, and has not asked the backend itself
			ctx, cancel := context.WithTimeout(background, time.Second)
			defer cancel()
			began := time.Now()
			_, err := b.Mutex("x").Lock(ctx)
			isError(t, err, context.DeadlineExceeded, pawl.ErrHeld)
			if took := time.Since(began); took != time.Second {
				t.Errorf("the wait ended after %v", took)
			}
			var held *pawl.HeldError
			if !errors.As(err, &held) || len(held.Holders) != 1 {
				t.Errorf("the error does not name the holder: %v", err)
			}
		}
		w.waitersLeft("x", 0)
	})
}

func TestCancelledWaitersLeaveNothingAndSkipNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		other, _ := w.client(nil)
		held := must(t)(a.Mutex("x").Lock(background))
		ctx, cancel := context.WithCancel(background)
		var wg sync.WaitGroup
		for i := range 100 {
			c := b
			if i%3 == 0 {
				c, _ = w.client(nil)
			}
			wg.Go(func() {
				_, err := c.Mutex("x").Lock(ctx)
				if err != context.Canceled {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		last := make(chan *pawl.Lease, 1)
		go func() { l, _ := other.Mutex("x").Lock(background); last <- l }()
		synctest.Wait()
		cancel()
		wg.Wait()
		w.waitersLeft("x", 1)
		if n := b.Gates() + b.Inboxes(); n > 0 {
			t.Errorf("%d things were left behind", n)
		}
		noError(t, held.Release(background))
		noError(t, (<-last).Release(background))
		w.free("x")
	})
}

// A wait may be cancelled in the very instant in which it is granted, by the backend or inside the process.
// Either way the next one must get the lock.
func TestCancelRacingAGrantLosesNoWakeUp(t *testing.T) {
	for range 100 {
		inWorld(t, func(t *testing.T, w *world) {
			a, _ := w.client(nil)
			b, _ := w.client(nil)
			held := must(t)(a.Mutex("x").Lock(background))
			var wg sync.WaitGroup
			ctx, cancel := context.WithCancel(background)
			for _, c := range []*pawl.Client{a, b, a} {
				wg.Go(func() {
					if l, err := c.Mutex("x").Lock(ctx); err == nil {
						noError(t, l.Release(background))
					}
				})
			}
			survivor := make(chan *pawl.Lease, 1)
			synctest.Wait()
			go func() { l, _ := b.Mutex("x").Lock(background); survivor <- l }()
			synctest.Wait()
			go cancel()
			noError(t, held.Release(background))
			wg.Wait()
			noError(t, (<-survivor).Release(background))
			w.free("x")
		})
	}
}

func TestReplyThatWasLostIsAskedForAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		lost := false
		f.set(nil, func(op string) error {
			if op == "acquire" && !lost {
				lost = true
				return errNet
			}
			return nil
		})
		lease := must(t)(c.Mutex("x").Lock(background))
		if e := w.entry("x"); len(e.Holders) != 1 || e.Holders[0].Fence != lease.Fence() || f.count("acquire") != 2 {
			t.Errorf("the grant that was made is not the one we have: %+v, fence %d", e, lease.Fence())
		}
		noError(t, lease.Release(background))
		w.free("x")
	})
}

func TestReplyOfATryThatWasLostIsTakenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		f.set(nil, func(op string) error {
			if op == "acquire" {
				return errNet
			}
			return nil
		})
		_, err := c.Mutex("x").TryLock(background)
		isError(t, err, pawl.ErrUnavailable, errNet)
		if errors.Is(err, pawl.ErrHeld) {
			t.Error("a failing backend looks like a held lock")
		}
		w.free("x")
	})
}

func TestFailingBackendIsRiddenOutForABoundedTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		up := f.down()
		began := time.Now()
		_, err := c.Mutex("x").Lock(background)
		isError(t, err, pawl.ErrUnavailable, errNet)
		if took := time.Since(began); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("said after %v, want about 10 s", took)
		}
		if n := f.count("acquire"); n > 40 {
			t.Errorf("%d attempts in 10 s", n)
		}
		time.AfterFunc(5*time.Second, up)
		must(t)(c.Mutex("x").Lock(background)) // an outage of 5 s is not even seen
	})
}

func TestPermanentErrorIsSaidAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		wrong := &driver.Error{Backend: "test", Op: "acquire", Permanent: true, Err: errors.New("wrong password")}
		f.set(func(string) error { return wrong }, nil)
		began := time.Now()
		_, err := c.Mutex("x").Lock(background)
		isError(t, err, pawl.ErrUnavailable)
		if took := time.Since(began); took > 0 {
			t.Errorf("said after %v", took)
		}
	})
}

func TestServerThatDoesNotAnswerIsNotTheCallersDeadline(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		f.latency = time.Hour
		_, err := c.Mutex("x").TryLock(background)
		isError(t, err, pawl.ErrUnavailable)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v Is DeadlineExceeded, but the caller set none", err)
		}
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		_, err = c.Mutex("x").Lock(ctx)
		isError(t, err, context.DeadlineExceeded)
		if errors.Is(err, pawl.ErrHeld) {
			t.Error("nobody has said that it is held")
		}
		f.mu.Lock()
		f.latency = 0
		f.mu.Unlock()
	})
}

func TestLatencyAboveTheTTLIsNoGrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(&pawl.Options{RequestTimeout: time.Minute})
		f.latency = 3 * time.Second
		_, err := c.Mutex("x", pawl.WithTTL(2*time.Second)).Lock(background)
		isError(t, err, pawl.ErrUnavailable)
		time.Sleep(time.Minute)
		w.free("x")
	})
}

func TestDeadHolderIsReplacedWhenItsTTLIsOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dead, f := w.client(nil)
		must(t)(dead.Mutex("x").Lock(background))
		died := time.Now()
		f.down()
		c, _ := w.client(nil)
		lease := must(t)(c.Mutex("x").Lock(background))
		if took := time.Since(died); took < 30*time.Second || took > 30*time.Second+5*time.Millisecond {
			t.Errorf("granted again after %v, want the TTL of 30 s", took)
		}
		noError(t, lease.Release(background))
	})
}

func TestWaitingWorksWithoutSignals(t *testing.T) {
	for name, set := range map[string]func(*faulty){
		"lost":        func(f *faulty) { f.noSignals = true },
		"unsupported": func(f *faulty) { f.noSignals, f.noPush = true, true },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, _ := w.client(nil)
				b, f := w.client(nil)
				set(f)
				lease := must(t)(a.Mutex("x").Lock(background))
				time.AfterFunc(time.Minute, func() { _ = lease.Release(background) })
				began := time.Now()
				must(t)(b.Mutex("x").Lock(background))
				bound := 2 * time.Second // a third of QueueTTL: the next keep-alive
				if f.noPush {
					bound = 250 * time.Millisecond
				}
				if late := time.Since(began) - time.Minute; late < 0 || late > bound {
					t.Errorf("%v late", late)
				}
			})
		})
	}
}

// A signal of a grant that came and went while this process was paused must not be taken for the next one.
func TestOldSignalIsNotTakenForAGrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, f := w.client(nil)
		c, _ := w.client(nil)
		held := must(t)(a.Mutex("x").Lock(background))

		f.noSignals = true
		var late []driver.Signal // b's signals, held back
		defer f.Driver.Listen(func(s driver.Signal) { late = append(late, s) })()

		got := make(chan *pawl.Lease, 1)
		go func() { l, _ := b.Mutex("x").Lock(background); got <- l }()
		synctest.Wait()
		f.down() // b is cut off: it does not renew what it is granted now
		noError(t, held.Release(background))
		synctest.Wait()
		if len(late) != 1 || late[0].Kind != driver.SignalGranted {
			t.Fatalf("signals %v", late)
		}
		time.Sleep(6 * time.Second) // b's grant is over
		third := must(t)(c.Mutex("x").Lock(background))
		f.set(nil, nil) // b is back, and queues again
		time.Sleep(4 * time.Second)
		f.hear(late[0]) // and now the old signal arrives
		synctest.Wait()
		select {
		case l := <-got:
			t.Fatalf("b believes in fence %d while %d is held", l.Fence(), third.Fence())
		default:
		}
		noError(t, third.Release(background))
		if l := <-got; l.Fence() <= third.Fence() {
			t.Errorf("fence %d after %d", l.Fence(), third.Fence())
		}
	})
}

func TestForceLockTakesTheLockAndTellsItsHolder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		lease := must(t)(a.Mutex("x").Lock(background))
		queued := make(chan error, 1)
		ctx, cancel := context.WithCancel(background)
		go func() { _, err := a.Mutex("x").Lock(ctx); queued <- err }()
		synctest.Wait()
		forced := must(t)(b.Mutex("x").ForceLock(background))
		synctest.Wait()
		var lost *pawl.LostError
		if err := lease.Err(); !errors.As(err, &lost) || lost.Reason != pawl.ReasonBroken || lost.By.PID == 0 {
			t.Errorf("the old holder is told %v", err)
		}
		again := must(t)(b.Mutex("x").ForceLock(background)) // also from oneself
		synctest.Wait()
		isError(t, forced.Err(), pawl.ErrLost)
		isError(t, lease.Release(background), pawl.ErrLost)
		noError(t, again.Err())
		cancel()
		isError(t, <-queued, context.Canceled)
	})
}

func TestDeadlineOfAWaitNamesNobodyWhoIsGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		gone := must(t)(a.Mutex("x").Lock(background))
		got := make(chan *pawl.Lease)
		go func() { got <- must(t)(b.Mutex("x").Lock(background)) }()
		synctest.Wait()
		noError(t, gone.Release(background))
		lease := <-got
		ctx, cancel := context.WithTimeout(background, 5*time.Millisecond)
		defer cancel()
		_, err := b.Mutex("x").Lock(ctx) // it waits here, for the lease to be passed on
		isError(t, err, context.DeadlineExceeded, pawl.ErrHeld)
		var held *pawl.HeldError
		if errors.As(err, &held) && len(held.Holders) > 0 && held.Holders[0].Fence == gone.Fence() {
			t.Errorf("%v, but that lease was released", err)
		}
		noError(t, lease.Release(background))
	})
}
