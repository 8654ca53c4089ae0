package pawl_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

// Of five waiters in one process only the first is in the backend's queue, behind a
// waiter of another process.
func TestEachWaiterIsToldItsOwnPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var p places
		a, _ := w.client(nil)
		b, _ := w.client(&pawl.Options{Observer: p.observer()})
		held := must(t)(a.Mutex("x").Lock(background))
		go func() { noError(t, must(t)(a.Mutex("x").Lock(background)).Release(background)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		got := make(chan int)
		for range 5 {
			go func() {
				_, err := b.Mutex("x").Lock(ctx)
				var held *pawl.HeldError
				if !errors.As(err, &held) || held.Holders != 1 || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v does not say who holds it", err)
					held = &pawl.HeldError{}
				}
				got <- held.Position
			}()
			synctest.Wait()
		}
		for place := 2; place <= 6; place++ {
			if n := p.first()[place]; n != 1 {
				t.Errorf("%d were told that their place is %d", n, place)
			}
		}
		places := map[int]bool{}
		for range 5 {
			places[<-got] = true
		}
		if places[1] { // they give up in any order, but one of another process stays ahead
			t.Errorf("places %v of those who gave up", places)
		}
		noError(t, held.Release(background))
		w.free("x")
	})
}

func TestWaiterThatGivesUpIsToldItsOwnPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, _ := w.client(nil)
		held := must(t)(a.Mutex("x").Lock(background))
		for i := range 5 { // the last gives up first
			go func() {
				ctx, cancel := context.WithTimeout(background, time.Duration(10-i)*time.Second)
				defer cancel()
				_, err := b.Mutex("x").Lock(ctx)
				var held *pawl.HeldError
				if !errors.As(err, &held) || held.Position != i+1 {
					t.Errorf("number %d gives up with %v", i+1, err)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		noError(t, held.Release(background))
		w.free("x")
	})
}

func TestErrorsSayThatANameIsInUseByThisClient(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(&pawl.Options{HandoffWindow: time.Second})
		held := lockWithFencesToSpare(t, w, c)
		ctx, cancel := context.WithTimeout(background, time.Millisecond)
		defer cancel()
		waited := make(chan error, 1)
		go func() {
			_, err := c.Mutex("x").Lock(ctx)
			waited <- err
		}()
		synctest.Wait() // it is in the local queue: a try does not ask the backend then
		_, err := c.Mutex("x").TryLock(background)
		if want := `pawl: "x" is in use by this client`; err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
		want := `pawl: gave up waiting for "x": context deadline exceeded: "x" is in use by this client; place 1 in the queue`
		if err := <-waited; err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
		noError(t, held.Release(background))
		w.free("x")
	})
}

// An Observer that panics or ends the goroutine when it gets a local waiter leaves
// nothing behind, whether or not that waiter has been passed a lease meanwhile.
func TestObserverThatEndsAWaiterLeavesNothingBehind(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("observer") }, "Goexit": runtime.Goexit} {
		for when, handOver := range map[string]bool{"waits": false, "has a lease": true} {
			t.Run(name+" while it "+when, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					heard := func() {}
					c, _ := w.client(&pawl.Options{HandoffWindow: time.Second, Observer: &pawl.Observer{
						Queued: func(pawl.QueuedEvent) { heard() },
					}})
					held := lockWithFencesToSpare(t, w, c)
					heard = func() {
						time.Sleep(time.Millisecond)
						end()
					}
					var wg sync.WaitGroup
					wg.Go(func() {
						defer func() { _ = recover() }()
						_, err := c.Mutex("x").Lock(background)
						t.Errorf("Lock answers %v", err)
					})
					synctest.Wait()
					if handOver {
						noError(t, held.Release(background))
					}
					wg.Wait()
					if !handOver {
						noError(t, held.Release(background))
					}
					w.free("x")
					if n := c.Gates() + c.Inboxes() + c.Leases(); n > 0 {
						t.Errorf("%d things were left behind", n)
					}
				})
			})
		}
	}
}
