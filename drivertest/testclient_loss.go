package drivertest

import (
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

// quickRenewal returns the options of a client that renews its leases each second, or
// less often if the backend is slow. Without push, only a renewal detects a loss.
func quickRenewal(k *kit) *pawl.Options {
	o := &pawl.Options{TTL: 3 * time.Second}
	if k.suite.Clock == nil {
		o.TTL = max(o.TTL, 12*k.unit)
	}
	return o
}

// testClientLoss tests how a holder learns of the loss of its lease.
func testClientLoss(s *suite) {
	if s.canBreak {
		s.test("ABreakReachesTheHolderAndLetsTheNextIn", func(k *kit) {
			first := k.mustLock(k.newClient(quickRenewal(k)))
			waiter := k.startWaiter(nil)
			op := k.newClient(&pawl.Options{ID: "op"})
			if err := op.Break(k.ctx, k.name, first.Fence(), &pawl.BreakOptions{Delay: -1}); err != nil {
				k.Fatal(err)
			}
			if lost := k.wantLeaseLost(first, pawl.ReasonBroken); lost.By.Client != "op" {
				k.Errorf("lost to %+v, want op", lost.By)
			}
			second := waiter.wantGranted()
			if err := first.Release(k.ctx); !errors.Is(err, pawl.ErrLost) {
				k.Errorf("Release of a lost lease: %v; want ErrLost", err)
			}
			k.a.wantFences(second.Fence())
			k.mustUnlock(second)
			k.a.wantHoldersWaiters(0, 0)
		})
	}

	if s.canBreak {
		s.test("ABreakClosesTheNameForTheTTLOfTheLease", func(k *kit) {
			first := k.mustLock(k.newClient(&pawl.Options{TTL: long}))
			if err := k.newClient(nil).Break(k.ctx, k.name, first.Fence(), nil); err != nil {
				k.Fatal(err)
			}
			if e := k.a.wantHoldersWaiters(0, 0); e.ClosedFor <= long/2 || e.ClosedFor > long+k.unit {
				k.Errorf("closed for %v, want the TTL, %v", e.ClosedFor, long)
			}
		})
	}

	s.test("AForcedGrantReachesTheOldHolder", func(k *kit) {
		first := k.mustLock(k.newClient(quickRenewal(k)))
		second, err := k.newClient(&pawl.Options{ID: "taker"}).Mutex(k.name).ForceLock(k.ctx)
		if err != nil {
			k.Fatal(err)
		}
		if lost := k.wantLeaseLost(first, pawl.ReasonBroken); lost.By.Client != "taker" {
			k.Errorf("lost to %+v, want taker", lost.By)
		}
		if second.Fence() <= first.Fence() {
			k.Errorf("fences %d, then %d; want them to rise", first.Fence(), second.Fence())
		}
		k.mustUnlock(second)
		k.a.wantHoldersWaiters(0, 0)
	})

	if s.Clock != nil {
		return
	}
	// The other tests wait for real time, so the backend must not have a fake clock.

	s.testPatient("ALeaseIsKeptOverManyTTLsThoughOthersWait", func(k *kit) {
		first := k.mustLock(k.newClient(&pawl.Options{TTL: 3 * k.unit}))
		waiter := k.startWaiter(nil)
		k.sleep(8 * k.unit)
		if err := first.Err(); err != nil {
			k.Fatalf("Err: %v; want it kept", err)
		}
		k.b.wantFences(first.Fence())
		k.mustUnlock(first)
		waiter.wantGranted()
	})

	s.test("ADeadHoldersNameGoesToTheWaiterWithoutAnyEvent", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(2 * k.unit))) // the lease of a dead process
		waiter := k.startWaiter(nil)
		waiter.wantGranted()
	})
}
