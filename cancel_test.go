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

func TestAnEndedCtxSendsNothing(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		ctx, cancel := context.WithCancel(background)
		cancel()
		isError(t, errOf(c.Mutex("x").Lock(ctx)), context.Canceled)
		isError(t, errOf(c.Mutex("x").TryLock(ctx)), context.Canceled)
		wantEqual(t, "requests", net.count("acquire"), 0)
	})
}

func TestAWaitThatTimesOutDoesNotNameAFormerHolder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.twoClients()
		gone := must(a.Mutex("x").Lock(background))(t)
		got := startLock(t, b.Mutex("x"))
		noError(t, gone.Release(background))
		lease := <-got
		ctx := timeoutCtx(t, 5*time.Millisecond)
		_, err := b.Mutex("x").Lock(ctx) // it waits for the lease to be passed on
		isError(t, err, context.DeadlineExceeded, pawl.ErrHeld)
		var held *pawl.HeldError
		if errors.As(err, &held) && held.Holders > 0 && held.Holder.Fence == gone.Fence() {
			t.Errorf("%v names a lease that was released", err)
		}
		noError(t, lease.Release(background))
	})
}

// A wait may be cancelled at the moment of its grant by the backend or by a holder of the
// process. In both cases the next waiter must get the lock.
func TestCancelRacingAGrantLosesNoWakeUp(t *testing.T) {
	for range 100 {
		inWorld(t, func(t *testing.T, w *world) {
			a, b := w.twoClients()
			held := must(a.Mutex("x").Lock(background))(t)
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
			w.wantFree("x")
		})
	}
}

func TestAGrantAfterTheEndOfTheCtxIsReleased(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, net *network) {
		net.acquireFunc = func(_ context.Context, c driver.Claim) (driver.Grant, error) { // it ignores its ctx
			time.Sleep(600 * time.Millisecond)
			return net.Driver.Acquire(background, c)
		}
		m := c.Mutex("x")
		for _, begin := range []func(context.Context) (*pawl.Lease, error){m.TryLock, m.Lock, m.ForceLock} {
			for _, want := range []error{context.DeadlineExceeded, context.Canceled} {
				ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
				if want == context.Canceled {
					cancel()
					ctx, cancel = context.WithCancel(background)
					time.AfterFunc(100*time.Millisecond, cancel)
				}
				isError(t, errOf(begin(ctx)), want)
				w.wantFree("x")
				cancel()
			}
		}
	})
}
