package pawl_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

// Only the first of five waiters in a process is in the backend's queue, behind a waiter
// of another process.
func TestEachWaiterGetsItsOwnPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		events := &eventRecorder{}
		a, _ := w.client(nil)
		b, _ := w.client(&pawl.Options{Observer: events.observer()})
		held := must(a.Mutex("x").Lock(background))(t)
		go func() { noError(t, must(a.Mutex("x").Lock(background))(t).Release(background)) }()
		synctest.Wait()
		ctx := timeoutCtx(t, time.Second)
		got := make(chan int)
		for range 5 {
			go func() {
				_, err := b.Mutex("x").Lock(ctx)
				var held *pawl.HeldError
				if !errors.As(err, &held) || held.Holders != 1 || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v does not name the holder", err)
					held = &pawl.HeldError{}
				}
				got <- held.Position
			}()
			synctest.Wait()
		}
		first := map[uint64]int{} // the first place that was reported to each claim
		for _, e := range events.all() {
			if first[e.Claim] == 0 {
				first[e.Claim] = e.err.(*pawl.HeldError).Position
			}
		}
		if got := slices.Sorted(maps.Values(first)); !slices.Equal(got, []int{2, 3, 4, 5, 6}) {
			t.Errorf("the waiters got the places %v; want 2 to 6", got)
		}
		began, places := time.Now(), map[int]bool{}
		for range 5 {
			places[<-got] = true
		}
		wantEqual(t, "the waiters waited for", time.Since(began), time.Second)
		if places[1] { // they give up in any order, but the waiter of the other process stays the first
			t.Errorf("places %v of the waiters that gave up; want none at 1", places)
		}
		noError(t, held.Release(background))
		w.wantFree("x")
	})
}

// While a lease of this client may be passed on, the client's waiters and tries send
// nothing to the backend. Their errors show the lease as the backend would.
func TestHeldErrorShowsTheLeaseOfThisClient(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(&pawl.Options{HandoffWindow: time.Second})
		held := lockWithFencesToSpare(t, w, c)
		ctx := timeoutCtx(t, time.Millisecond)
		waited := make(chan error, 1)
		go func() {
			_, err := c.Mutex("x").Lock(ctx)
			waited <- err
		}()
		synctest.Wait() // Lock is in the local queue, so a try sends nothing to the backend
		wantShown := func(what string, err error, place int) {
			t.Helper()
			want := w.entry("x").Holders[0]
			want.Fence = held.Fence() // the backend shows the first fence of the range
			got, ok := errors.AsType[*pawl.HeldError](err)
			if ok && got.Holder.ExpiresIn > 0 && got.Holder.ExpiresIn <= want.ExpiresIn {
				want.ExpiresIn = got.Holder.ExpiresIn // the client counts from its request
			}
			if ok && got.Holder.Since.Equal(want.Since) {
				want.Since = got.Holder.Since // perhaps in another zone
			}
			if !ok || got.Holders != 1 || got.Position != place || !reflect.DeepEqual(got.Holder, want) {
				t.Errorf("%s returns %v: %+v; want the holder %+v", what, err, got, want)
			}
		}
		_, err := c.Mutex("x").TryLock(background)
		wantShown("a try", err, 0)
		err = <-waited
		wantShown("a wait", err, 1)
		isError(t, err, context.DeadlineExceeded)
		noError(t, held.Release(background))
		w.wantFree("x")
	})
}

// When Observer.Queued panics or ends its goroutine, the local waiter leaves the queue.
// If a holder has already passed it a lease, the client releases that lease.
func TestObserverThatEndsAWaiterLeavesNothingBehind(t *testing.T) {
	for name, end := range callbackFailures {
		for when, handOver := range map[string]bool{"waits": false, "has a lease": true} {
			runInWorld(t, name+" while it "+when, func(t *testing.T, w *world) {
				onQueued := func() {}
				c, _ := w.client(&pawl.Options{HandoffWindow: time.Second, Observer: &pawl.Observer{
					Queued: func(pawl.QueuedEvent) { onQueued() },
				}})
				held := lockWithFencesToSpare(t, w, c)
				onQueued = func() {
					time.Sleep(time.Millisecond)
					end()
				}
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() { _ = recover() }()
					_, err := c.Mutex("x").Lock(background)
					t.Errorf("Lock returned %v, although the Observer had ended it", err)
				})
				synctest.Wait()
				if handOver {
					noError(t, held.Release(background))
				}
				wg.Wait()
				if !handOver {
					noError(t, held.Release(background))
				}
				w.wantFree("x")
				wantNothingLeft(t, c)
			})
		}
	}
}
