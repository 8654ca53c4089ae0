package drivertest

import (
	"context"
	"errors"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// testClient tests a pawl.Client over the backend. The root package has its own tests.
// These need both the client's waiting and the backend's queue, and wait for time only if
// the backend's clock is real.
func testClient(s *suite) {
	s.test("AMutexIsHeldByOneGoroutineOfAllClients", func(k *kit) {
		section := section{limit: driver.Unlimited}
		// One client passes leases on among its goroutines, the other releases each one.
		k.runOnClients(6, 10, []*pawl.Client{k.newClient(nil), k.newClient(&pawl.Options{HandoffWindow: -1})}, func(c *pawl.Client) error {
			return c.Mutex(k.name).Do(k.ctx, func(ctx context.Context) error {
				fence, _ := pawl.FenceOf(ctx, k.name)
				section.visit(driver.Claim{Weight: driver.Exclusive}, driver.Grant{Fence: fence})
				return nil
			})
		})
		section.check(k, 60)
		k.a.wantHoldersWaiters(0, 0)
	})

	s.test("AReleaseLetsTheNextInWithAHigherFence", func(k *kit) {
		first := k.mustLock(k.newClient(nil))
		waiter := k.startWaiter(nil)
		k.mustUnlock(first)
		second := waiter.wantGranted()
		if second.Fence() <= first.Fence() {
			k.Errorf("fences %d, then %d; want them to rise", first.Fence(), second.Fence())
		}
		k.a.wantHoldersWaiters(1, 0)
	})

	for name, end := range map[string]error{
		"ACancelledWaitLeavesNothing": context.Canceled, "AWaitThatItsDeadlineEndsLeavesNothing": context.DeadlineExceeded,
	} {
		s.test(name, func(k *kit) {
			first := k.mustLock(k.newClient(nil))
			waiter := k.startWaiter(nil)
			waiter.endCtx(end)
			if err := waiter.wantError(); !errors.Is(err, end) || end == context.DeadlineExceeded && !errors.Is(err, pawl.ErrHeld) {
				k.Errorf("Lock: %v; want %v, and ErrHeld after a deadline", err, end)
			}
			waiter.settle()
			k.a.wantHoldersWaiters(1, 0)
			k.mustUnlock(first)
			k.a.wantHoldersWaiters(0, 0)
		})
	}

	s.test("CancellingAHundredWaitersLeavesNothingAndSkipsNoWaiter", func(k *kit) {
		first := k.mustLock(k.newClient(nil))
		crowd := k.newClient(&pawl.Options{}) // its Close waits for abandoned requests
		ctx, cancel := context.WithCancel(k.ctx)
		defer cancel()
		ended := make(chan error, 100)
		for range cap(ended) {
			go func() {
				_, err := crowd.Mutex(k.name).Lock(ctx)
				ended <- err
			}()
		}
		waiter := k.startWaiter(nil) // its place is among theirs
		cancel()
		for range cap(ended) {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				k.Errorf("Lock: %v; want the ctx's error", err)
			}
		}
		k.closeClient(crowd)
		k.mustUnlock(first)
		k.mustUnlock(waiter.wantGranted())
		k.a.wantHoldersWaiters(0, 0)
	})

	s.test("CloseReleasesLeasesAndLeavesQueues", func(k *kit) {
		holder := k.newClient(nil)
		first := k.mustLock(holder)
		waiter, next := k.startWaiter(nil), k.startWaiter(nil)
		k.closeClient(waiter.c)
		if err := waiter.wantError(); !errors.Is(err, pawl.ErrClosed) {
			k.Errorf("Lock: %v; want ErrClosed", err)
		}
		k.closeClient(holder)
		k.wantLeaseLost(first, pawl.ReasonClosed)
		k.mustUnlock(next.wantGranted())
		k.a.wantHoldersWaiters(0, 0)
	})
}
