package drivertest

import (
	"sync"
	"sync/atomic"

	"github.com/pawl-go/pawl/driver"
)

// testConcurrent runs many goroutines on both clients. The race detector does not help
// here, because a backend establishes no happens-before. So each section counts its
// holders.
func testConcurrent(s *suite) {
	s.timeless = true
	workers, rounds := 8, s.fewerIfFar(10)

	var turn atomic.Int64
	for name, c := range map[string]struct {
		limit int64
		claim func(k *kit) driver.Claim
	}{
		"TheQueueAdmitsOneAtATimeInTheOrderOfFences": {driver.Unlimited, func(k *kit) driver.Claim { return k.mutex(queue(long)) }},
		"TriesAdmitOneAtATime":                       {driver.Unlimited, func(k *kit) driver.Claim { return k.mutex() }},
		"ASemaphoreAdmitsNoMoreThanItsPermits":       {3, func(k *kit) driver.Claim { return k.permits(1, 3, queue(long)) }},
		"WritersAreAlone": {driver.Unlimited, func(k *kit) driver.Claim {
			if turn.Add(1)%4 == 0 {
				return k.mutex(queue(long))
			}
			return k.reader(queue(long))
		}},
	} {
		s.test(name, func(k *kit) {
			section := section{limit: c.limit}
			k.runWorkers(workers, rounds, func(w *worker) error { return w.enter(&section, c.claim(k)) })
			section.check(k, int64(workers*rounds))
			k.a.wantHoldersWaiters(0, 0)
		})
	}

	s.test("NothingIsRenewedNorLeftAfterARelease", func(k *kit) {
		for range s.fewerIfFar(20) {
			c := k.mutex()
			k.a.wantGranted(c)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if _, err := k.b.Renew(k.ctx, []driver.LeaseRef{lease(c), lease(c)}); err != nil {
						k.Errorf("Renew: %v", err)
					}
				})
			}
			if err := k.a.Release(k.ctx, lease(c)); err != nil {
				k.Errorf("Release: %v", err)
			}
			all.Wait()
			k.a.wantHoldersWaiters(0, 0)
		}
	})

	s.test("ConcurrentRepeatsOfATokenGetOneGrant", func(k *kit) {
		for i := range s.fewerIfFar(10) {
			c := k.permits(1, 5, named(k.nthName(i)), queue(long))
			got := make([]driver.Grant, 6)
			var all sync.WaitGroup
			for j := range got {
				all.Go(func() {
					g, err := []*client{k.a, k.b}[j%2].Acquire(k.ctx, c)
					if err != nil {
						k.Errorf("Acquire: %v", err)
					}
					got[j] = g
				})
			}
			all.Wait()
			for _, g := range got {
				if g.Fence != got[0].Fence {
					k.Fatalf("fences %d and %d for one token", got[0].Fence, g.Fence)
				}
			}
			if e := k.a.entry(c.Name); len(e.Holders) != 1 {
				k.Fatalf("%+v; want one holder", e)
			}
		}
	})

	s.test("CancellingRacesPassingOnAndNoWaiterIsSkipped", func(k *kit) {
		for i := range s.fewerIfFar(100) {
			name := k.nthName(i)
			holder, gone, next := k.mutex(named(name)), k.mutex(named(name), queue(long)), k.mutex(named(name), queue(long))
			k.a.wantGranted(holder)
			k.b.wantPlace(gone, 1)
			k.b.wantPlace(next, 2)
			var all sync.WaitGroup
			all.Go(func() { _ = k.a.Release(k.ctx, lease(holder)) })
			all.Go(func() { _ = k.b.Release(k.ctx, lease(gone)) })
			all.Wait()
			k.b.wantGranted(next)
			if e := k.a.entry(name); len(e.Holders) != 1 || len(e.Waiters) != 0 {
				k.Fatalf("%+v; want only the next", e)
			}
		}
	})
}
