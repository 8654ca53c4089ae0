package pawl_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

func TestReleaseAnswersTheSameHoweverOftenItIsCalled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		lease := must(t)(c.Mutex("x").Lock(background))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { noError(t, lease.Release(background)) })
		}
		wg.Wait()
		noError(t, lease.Release(nil)) //nolint:staticcheck // a nil ctx must not keep a lock held
		if f.count("release") != 1 {
			t.Errorf("%d releases were sent", f.count("release"))
		}
	})
}

func TestLateReleaseFreesNobodyElse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, f := w.client(nil)
		b, _ := w.client(nil)
		old := must(t)(a.Mutex("x").Lock(background))
		f.down()
		now := must(t)(b.Mutex("x").Lock(background)) // after the TTL of the old one
		f.set(nil, nil)
		isError(t, old.Release(background), pawl.ErrLost)
		synctest.Wait()
		if e := w.entry("x"); len(e.Holders) != 1 || e.Holders[0].Fence != now.Fence() {
			t.Errorf("after the late release: %+v", e)
		}
	})
}

func TestReleaseThatCannotBeSentGoesOnInTheBackground(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		lease := must(t)(c.Mutex("x").Lock(background))
		up := f.down()
		isError(t, lease.Release(background), pawl.ErrUnavailable, errNet)
		isError(t, lease.Err(), pawl.ErrReleased)
		time.Sleep(10 * time.Second)
		if len(w.entry("x").Holders) != 1 {
			t.Error("it is free though nothing was sent")
		}
		up()
		time.Sleep(2 * time.Second)
		w.free("x")
	})
}

func TestReleaseGivesUpWhenTheLeaseHasEndedByItself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		lease := must(t)(c.Mutex("x").Lock(background))
		f.down()
		isError(t, lease.Release(background), pawl.ErrUnavailable)
		time.Sleep(time.Minute)
		n := f.count("release")
		time.Sleep(time.Hour)
		if f.count("release") != n {
			t.Error("it goes on for ever")
		}
	})
}

func TestReleaseOfALeaseThatTheBackendHasNotSaysLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, f := w.client(nil)
		f.noSignals = true
		b, _ := w.client(&pawl.Options{ID: "breaker"})
		lease := must(t)(a.Mutex("x").Lock(background))
		noError(t, b.Break(background, "x", lease.Fence(), 0))
		var lost *pawl.LostError
		if err := lease.Release(background); !errors.As(err, &lost) || lost.By.Client != "breaker" || lost.Fence != lease.Fence() {
			t.Errorf("release says %v", err)
		}
	})
}

// A renewal that is under way must not reach the backend after the release.
// A lease that was lost may still be there, kept by renewals whose answers did not come. Close does not know of it any
// more, so its release gives it back although Close has begun.
func TestReleaseOfALostLeaseGivesItBackThoughCloseHasBegun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		lost := must(t)(c.Mutex("lost").Lock(background))
		f.set(nil, func(op string) error {
			if op == "renew" {
				return errNet
			}
			return nil
		})
		<-lost.Done()
		slow := must(t)(c.Mutex("slow").Lock(background))
		begun, answer := make(chan struct{}), make(chan struct{})
		f.set(func(op string) error {
			if op == "release" {
				f.set(nil, nil) // only the first
				close(begun)
				<-answer
			}
			return nil
		}, nil)
		go func() { _ = slow.Release(background) }()
		<-begun
		closed := make(chan error)
		go func() { closed <- c.Close(background) }()
		synctest.Wait() // it waits for the release under way
		if len(w.entry("lost").Holders) != 1 {
			t.Fatal("the backend does not hold it any more, so nothing is shown")
		}
		isError(t, lost.Release(background), pawl.ErrLost)
		close(answer)
		noError(t, <-closed)
		w.free("lost")
		w.free("slow")
	})
}

func TestReleaseWaitsForARenewalUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		lease := must(t)(c.Mutex("x").Lock(background))
		var mu sync.Mutex
		var order []string
		f.set(func(op string) error {
			if op == "renew" {
				time.Sleep(time.Second)
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, op)
			return nil
		}, nil)
		for f.count("renew") == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		noError(t, lease.Release(background))
		if len(order) != 2 || order[0] != "renew" || order[1] != "release" {
			t.Errorf("order %v", order)
		}
		time.Sleep(time.Minute)
		if f.count("renew") != 1 {
			t.Error("it was renewed after the release")
		}
		w.free("x")
	})
}

func TestMinHoldKeepsTheNameHeldAfterTheRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		began := time.Now()
		lease := must(t)(a.Mutex("x", pawl.WithMinHold(time.Minute)).Lock(background))
		time.Sleep(10 * time.Second)
		noError(t, lease.Release(background))
		must(t)(b.Mutex("x").Lock(background))
		if took := time.Since(began); took < time.Minute || took > time.Minute+5*time.Millisecond {
			t.Errorf("the next one was in after %v", took)
		}
	})
}

func TestReleaseNowDoesNotKeepTheNameForItsMinHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		lease := must(t)(a.Mutex("x", pawl.WithMinHold(time.Minute)).Lock(background))
		noError(t, lease.ReleaseNow(background))
		noError(t, lease.Release(background)) // answers the same
		must(t)(b.Mutex("x").TryLock(background))
	})
}

func TestLockDelayKeepsTheNameClosedAfterAnExpiryOnly(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, f := w.client(nil)
		b, _ := w.client(nil)
		m := a.Mutex("x", pawl.WithLockDelay(time.Minute))
		noError(t, must(t)(m.Lock(background)).Release(background))
		must(t)(m.TryLock(background)) // at once
		f.down()
		began := time.Now()
		must(t)(b.Mutex("x").Lock(background))
		if took := time.Since(began); took < 90*time.Second || took > 90*time.Second+5*time.Millisecond {
			t.Errorf("the next one was in after %v, want TTL and delay", took)
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		lease := must(t)(a.Mutex("x").Lock(background))
		foreign := must(t)(b.Mutex("y").Lock(background))
		waiters := make(chan error)
		for _, name := range []string{"x", "x", "y", "y"} { // behind its own client, and behind another
			go func() { _, err := a.Mutex(name).Lock(background); waiters <- err }()
		}
		synctest.Wait()
		noError(t, a.Close(background))
		for range 4 {
			isError(t, <-waiters, pawl.ErrClosed)
		}
		<-lease.Done()
		isError(t, lease.Err(), pawl.ErrLost, pawl.ErrClosed)
		isError(t, lease.Release(background), pawl.ErrClosed)
		w.free("x")
		if e := w.entry("y"); len(e.Waiters) != 0 || len(e.Holders) != 1 || foreign.Err() != nil {
			t.Errorf("what is left of y: %+v", e)
		}

		_, err := a.Mutex("x").Lock(background)
		isError(t, err, pawl.ErrClosed)
		_, err = a.Mutex("x").TryLock(background)
		isError(t, err, pawl.ErrClosed)
		_, err = a.Inspect(background, "x")
		isError(t, err, pawl.ErrClosed)
		for _, err := range a.List(background, "") {
			isError(t, err, pawl.ErrClosed)
		}
		isError(t, a.Break(background, "x", 1, 0), pawl.ErrClosed)
		noError(t, a.Close(background)) // once more
	})
}

func TestAcquireRacingCloseLeavesNothing(t *testing.T) {
	for range 100 {
		inWorld(t, func(t *testing.T, w *world) {
			c, f := w.client(nil)
			f.latency = time.Millisecond
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * 300 * time.Microsecond)
					lease, err := c.Mutex("x").Lock(background)
					if err == nil {
						err = lease.Release(background)
					}
					if err != nil {
						isError(t, err, pawl.ErrClosed)
					}
				})
			}
			time.Sleep(1500 * time.Microsecond)
			noError(t, c.Close(background))
			wg.Wait()
			w.free("x")
		})
	}
}

func TestCloseDoesNotWaitLongerThanItsCtx(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		must(t)(c.Mutex("x").Lock(background))
		f.down()
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		began := time.Now()
		isError(t, c.Close(ctx), context.DeadlineExceeded)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestInspection(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(&pawl.Options{ID: "a"})
		b, _ := w.client(&pawl.Options{ID: "b"})
		lease := must(t)(a.Mutex("jobs/1").Lock(background))
		must(t)(a.RWMutex("jobs/2").RLock(background))
		must(t)(a.Mutex("other").Lock(background))
		ctx, cancel := context.WithCancel(background)
		done := make(chan struct{})
		go func() { _, _ = b.Mutex("jobs/1").Lock(ctx); close(done) }()
		synctest.Wait()
		var names []string
		for e, err := range a.List(background, "jobs/") {
			noError(t, err)
			names = append(names, e.Name)
		}
		if len(names) != 2 || names[0] != "jobs/1" || names[1] != "jobs/2" {
			t.Errorf("listed %v", names)
		}
		e, err := b.Inspect(background, "jobs/1")
		noError(t, err)
		if len(e.Holders) != 1 || e.Holders[0].Owner.Client != "a" || e.Holders[0].Fence != lease.Fence() ||
			len(e.Waiters) != 1 || e.Waiters[0].Owner.Client != "b" {
			t.Errorf("%+v", e)
		}
		if p := a.Properties(); p.Backend != "memory" || !p.Push {
			t.Errorf("%+v", p)
		}
		cancel()
		<-done
	})
}

func TestObserverHearsEverything(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		heard := map[string]int{}
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			heard[what]++
		}
		c, f := w.client(&pawl.Options{Observer: &pawl.Observer{
			Queued:   func(pawl.QueuedEvent) { note("waiting") },
			Acquired: func(e pawl.AcquiredEvent) { note("acquired after " + e.Waited.String()) },
			Released: func(e pawl.ReleasedEvent) { note("released after " + e.Held.String()) },
			Lost:     func(e pawl.LostEvent) { note("lost: " + e.Err.Reason.String()) },
			Failed:   func(e pawl.FailedEvent) { note("trouble: " + e.Op) },
		}})
		other, _ := w.client(nil)
		held := must(t)(other.Mutex("x").Lock(background))
		time.AfterFunc(time.Minute, func() { _ = held.Release(background) })
		lease := must(t)(c.Mutex("x").Lock(background))
		time.Sleep(time.Second)
		noError(t, lease.Release(background))
		must(t)(c.Mutex("y").Lock(background))
		f.down()
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for _, want := range []string{"waiting", "acquired after 1m0s", "acquired after 0s", "released after 1s", "lost: backend unreachable", "trouble: renew"} {
			if heard[want] == 0 {
				t.Errorf("not heard: %s; heard: %v", want, heard)
			}
		}
	})
}

// Those who come later wait for the first without holding up virtual time.
func TestReleasesAtTheSameTimeAnswerTheSame(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		for _, failure := range []error{nil, errNet} {
			lease := must(t)(c.Mutex("x").Lock(background))
			f.set(func(op string) error { return failure }, nil)
			f.slow(2 * time.Second)
			answers := make(chan error)
			began := time.Now()
			for range 3 {
				go func() { answers <- lease.Release(background) }()
			}
			first := <-answers
			for range 2 {
				if err := <-answers; !errors.Is(err, failure) || err != first {
					t.Errorf("one says %v, another %v", first, err)
				}
			}
			if took := time.Since(began); took < time.Second {
				t.Errorf("they were answered after %v", took)
			}
			f.set(nil, nil)
			f.slow(0)
			time.Sleep(time.Minute)
		}
	})
}

func TestSecondReleaseAfterADriversPanicDoesNotSayThatItIsReleased(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		heard := &listener{}
		c, f := w.client(&pawl.Options{Observer: heard.observer()})
		lease := must(t)(c.Mutex("x").Lock(background))
		var first sync.Once
		f.set(func(op string) error { first.Do(func() { panic("a bug") }); return nil }, nil)
		aloneOn(func() { _ = lease.Release(background) })
		isError(t, lease.Release(background), pawl.ErrUnavailable)
		time.Sleep(time.Second)
		w.free("x")
		heard.balanced(t)
	})
}
