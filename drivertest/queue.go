package drivertest

import (
	"github.com/pawl-go/pawl/driver"
)

func testQueue(s *suite) {
	s.test("ServesInTheOrderOfArrival", func(k *kit) {
		holder := k.mutex()
		last := k.a.wantGranted(holder).Fence
		waiters := k.queueMutexes(5)
		for i, c := range waiters {
			k.a.mustRelease(holder)
			later := waiters[i+1:]
			k.a.wantHoldersWaiters(1, len(later)) // checked first, because repeated claims rejoin the queue
			for j := range later {
				j = len(later) - 1 - j // the last waiter first, for the same reason
				k.b.wantPlace(later[j], j+1)
			}
			g := k.a.wantGranted(c)
			if g.Fence <= last {
				k.Fatalf("VIOLATION: fences %d, then %d; want them to rise along the queue", last, g.Fence)
			}
			holder, last = c, g.Fence
		}
	})

	s.test("PlacesCountFromOneAndMoveUp", func(k *kit) {
		k.a.wantGranted(k.mutex())
		waiters := k.queueMutexes(3)
		k.a.mustRelease(waiters[1])
		k.a.wantHoldersWaiters(1, 2)
		k.b.wantPlace(waiters[2], 2)
		k.b.wantPlace(waiters[0], 1)
		k.a.mustRelease(waiters[0])
		k.a.wantHoldersWaiters(1, 1)
		k.b.wantPlace(waiters[2], 1)
	})

	s.test("AskingAgainNeitherMovesNorAddsAPlace", func(k *kit) {
		k.a.wantGranted(k.mutex())
		waiters := k.queueMutexes(3)
		for range 3 {
			k.b.wantPlace(waiters[0], 1)
			k.a.wantPlace(waiters[1], 2) // the client does not matter
		}
		k.b.wantPlace(waiters[2], 3)
		k.a.wantHoldersWaiters(1, 3)
	})

	s.test("AFreeNameIsGrantedWithoutQueueing", func(k *kit) {
		k.a.wantGranted(k.mutex(queue(long)))
		k.a.wantHoldersWaiters(1, 0)
	})

	s.test("ATryNeverQueues", func(k *kit) {
		holder, first := k.mutex(), k.mutex()
		k.a.wantGranted(holder)
		k.b.wantPlace(first, 0)
		k.b.wantPlace(first, 0)
		k.a.wantHoldersWaiters(1, 0)
		k.a.mustRelease(holder)
		k.a.wantHoldersWaiters(0, 0) // no waiter gets the name
	})

	s.test("ATryFailsWhileAClaimWaits", func(k *kit) {
		k.a.wantGranted(k.permits(1, 3))
		k.b.wantPlace(k.permits(3, 3, queue(long)), 1)
		k.a.wantPlace(k.permits(1, 3), 0) // it would fit, but a waiter is ahead
		k.a.wantHoldersWaiters(1, 1)
	})

	s.test("NoClaimPassesAWaiterThatNeedsMore", func(k *kit) {
		holder, large, small := k.permits(1, 3), k.permits(3, 3, queue(long)), k.permits(1, 3, queue(long))
		k.a.wantGranted(holder)
		k.b.wantPlace(large, 1)
		k.a.wantPlace(small, 2)
		k.a.mustRelease(holder)
		k.b.wantGranted(large)
		k.a.wantPlace(small, 1)
	})

	s.test("TheHeadLeavingLetsTheNextInAtOnce", func(k *kit) {
		k.a.wantGranted(k.permits(1, 3))
		large, small := k.permits(3, 3, queue(long)), k.permits(1, 3, queue(long))
		k.b.wantPlace(large, 1)
		k.a.wantPlace(small, 2)
		k.b.mustRelease(large)
		k.a.wantHoldersWaiters(2, 0)
		k.a.wantGranted(small)
	})

	s.test("AllWaitersThatFitAreGrantedAtOnce", func(k *kit) {
		holder := k.permits(3, 3)
		k.a.wantGranted(holder)
		one, two, three, four := k.permits(1, 3, queue(long)), k.permits(1, 3, queue(long)), k.permits(1, 3, queue(long)), k.permits(1, 3, queue(long))
		for i, c := range []driver.Claim{one, two, three, four} {
			k.b.wantPlace(c, i+1)
		}
		k.a.mustRelease(holder)
		k.a.wantHoldersWaiters(3, 1)
		k.b.wantPlace(four, 1)
	})

	s.test("ADeadHoldersNameGoesToTheHeadAndNotToTheNextClaim", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(k.unit)))
		first := k.mutex(queue(8 * k.unit))
		k.a.wantPlace(first, 1)
		k.advancePast(k.unit)
		k.b.wantHeld(k.mutex())
		k.b.wantPlace(k.mutex(queue(8*k.unit)), 1)
		k.a.wantGranted(first)
	})

	s.test("AWaiterNeedsNoOtherEventThanTheExpiry", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(k.unit)))
		waiter := k.mutex(queue(8 * k.unit))
		held := k.b.wantPlace(waiter, 1)
		if held.RetryAfter <= 0 || held.RetryAfter > k.unit+k.unit/4+k.suite.Uncertainty {
			k.Errorf("RetryAfter = %v; want when the holder expires", held.RetryAfter)
		}
		k.advancePast(k.unit)
		k.b.wantGranted(waiter)
	})

	s.test("ARefusalNamesTheHolderAndNoWaiter", func(k *kit) {
		g := k.a.wantGranted(k.mutex())
		k.b.wantPlace(k.mutex(queue(long)), 1)
		held := k.b.wantPlace(k.mutex(queue(long)), 2)
		if held.Holders != 1 || held.Holder.Fence != g.Fence {
			k.Errorf("holders = %+v; want the one with the fence %d", held.Holders, g.Fence)
		}
	})
}
