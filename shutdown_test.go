package pawl_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

func TestShutdownLetsHoldersFinish(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		events := &eventRecorder{}
		c, _ := w.client(&pawl.Options{Observer: events.observer(), TTL: time.Second})
		other, _ := w.client(nil)
		must(other.Mutex("theirs").Lock(background))(t)
		go func() {
			err := c.Mutex("work").Do(background, func(ctx context.Context) error {
				return sleep(ctx, 10*time.Second) // longer than the TTL: the client renews the lease
			})
			if err != nil {
				t.Errorf("the function ended with %v", err)
			}
		}()
		synctest.Wait()
		lease := must(c.Mutex("lease").Lock(background))(t)
		time.AfterFunc(5*time.Second, func() { noError(t, lease.Release(background)) })
		waited := make(chan error)
		for _, name := range []string{"theirs", "work", "work"} { // in the backend's queue, and in the local queue
			go func() { waited <- errOf(c.Mutex(name).Lock(background)) }()
		}
		synctest.Wait()

		go func() {
			time.Sleep(time.Second)
			isError(t, errOf(c.Mutex("free").TryLock(background)), pawl.ErrClosed)
			if _, err := c.Inspect(background, "free"); err != nil {
				t.Errorf("Inspect during Shutdown: %v", err)
			}
		}()
		for range 3 {
			go func() { _ = c.Shutdown(background) }() // several calls do no harm
		}
		took := must(timed(func() error { return c.Shutdown(background) }))(t)
		wantEqual(t, "Shutdown took", took, 10*time.Second)
		for range 3 {
			isError(t, <-waited, pawl.ErrClosed)
		}
		w.wantFree("work", "lease")
		events.checkBalance(t)
		wantEqual(t, "lost leases", events.count("lost"), 0)
		noError(t, c.Shutdown(background))
		noError(t, c.Close())
		isError(t, errOf(c.Inspect(background, "x")), pawl.ErrClosed)
	})
}

func TestShutdownEndsTheLeasesWhenItsCtxEnds(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, _ *network) {
		lease := must(c.Mutex("x").Lock(background))(t)
		ctx := timeoutCtx(t, time.Minute)
		took, err := timed(func() error { return c.Shutdown(ctx) })
		isError(t, err, context.DeadlineExceeded)
		wantEqual(t, "Shutdown took", took, time.Minute)
		isError(t, lease.Err(), pawl.ErrLost, pawl.ErrClosed)
		w.wantFree("x")
	})
}

func TestCloseDuringShutdownEndsTheLeases(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, _ *network) {
		lease := must(c.Mutex("x").Lock(background))(t)
		time.AfterFunc(time.Second, func() { noError(t, c.Close()) })
		took, err := timed(func() error { return c.Shutdown(nil) }) //nolint:staticcheck // nil means no bound
		noError(t, err)
		wantEqual(t, "Shutdown took", took, time.Second)
		isError(t, lease.Err(), pawl.ErrLost, pawl.ErrClosed)
		w.wantFree("x")
	})
}

// A claim that is under way when Shutdown begins may be granted. Then Shutdown waits for
// its lease as for any other.
func TestShutdownWaitsForTheLeaseOfAClaimThatIsUnderWay(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		net.latency = time.Second
		done := make(chan error)
		go func() {
			_, err := c.Mutex("x").TryDo(background, func(ctx context.Context) error { return sleep(ctx, time.Minute) })
			done <- err
		}()
		synctest.Wait()
		took := must(timed(func() error { return c.Shutdown(background) }))(t)
		wantWithin(t, "Shutdown took", took, time.Minute, time.Hour)
		noError(t, <-done)
	})
}

// A function may take a while to stop. The program must not close its resources before.
func TestShutdownWaitsForAFunctionWhoseLeaseIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, other := w.twoClients()
		var ended atomic.Bool
		go func() {
			_ = c.Mutex("x").Do(background, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Minute)
				ended.Store(true)
				return nil
			})
		}()
		synctest.Wait()
		must(other.Mutex("x").ForceLock(background))(t)
		briefCtx := timeoutCtx(t, time.Second)
		if !errors.Is(c.Shutdown(briefCtx), context.DeadlineExceeded) || ended.Load() {
			t.Error("Shutdown did not wait for the function until its ctx ended")
		}
		_ = c.Shutdown(background) // its result is the result of the first
		wantEqual(t, "the function had ended when a second Shutdown returned", ended.Load(), true)
	})
}
