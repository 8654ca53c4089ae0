package drivertest

import (
	"github.com/pawl-go/pawl/driver"
)

func testQueue(s *suite) {
	s.test("ServesInTheOrderOfArrival", func(k *kit) {
		holder := k.mutex()
		last := k.a.gets(holder).Fence
		waiters := k.line(5)
		for i, c := range waiters {
			k.a.releases(holder)
			later := waiters[i+1:]
			k.a.seesHoldersWaiters(1, len(later)) // a repeat of a claim always has a place
			for j := range later {
				j = len(later) - 1 - j // the last first, for the same reason
				k.b.waits(later[j], j+1)
			}
			g := k.a.gets(c)
			if g.Fence <= last {
				k.Fatalf("VIOLATION: fences %d, then %d; want them to rise along the queue", last, g.Fence)
			}
			holder, last = c, g.Fence
		}
	})

	s.test("PlacesCountFromOneAndMoveUp", func(k *kit) {
		k.a.gets(k.mutex())
		waiters := k.line(3)
		k.a.releases(waiters[1])
		k.a.seesHoldersWaiters(1, 2)
		k.b.waits(waiters[2], 2)
		k.b.waits(waiters[0], 1)
		k.a.releases(waiters[0])
		k.a.seesHoldersWaiters(1, 1)
		k.b.waits(waiters[2], 1)
	})

	s.test("AskingAgainNeitherMovesNorAddsAPlace", func(k *kit) {
		k.a.gets(k.mutex())
		waiters := k.line(3)
		for range 3 {
			k.b.waits(waiters[0], 1)
			k.a.waits(waiters[1], 2) // from either client
		}
		k.b.waits(waiters[2], 3)
		k.a.seesHoldersWaiters(1, 3)
	})

	s.test("AFreeNameIsGrantedWithoutQueueing", func(k *kit) {
		k.a.gets(k.mutex(queue(long)))
		k.a.seesHoldersWaiters(1, 0)
	})

	s.test("ATryNeverQueues", func(k *kit) {
		holder, first := k.mutex(), k.mutex()
		k.a.gets(holder)
		k.b.waits(first, 0)
		k.b.waits(first, 0)
		k.a.seesHoldersWaiters(1, 0)
		k.a.releases(holder)
		k.a.seesHoldersWaiters(0, 0) // there is no waiter to pass it to
	})

	s.test("ATryFailsWhileAClaimWaits", func(k *kit) {
		k.a.gets(k.permits(1, 3))
		k.b.waits(k.permits(3, 3, queue(long)), 1)
		k.a.waits(k.permits(1, 3), 0) // there is room for it, but a waiter is ahead
		k.a.seesHoldersWaiters(1, 1)
	})

	s.test("NoClaimPassesAWaiterThatNeedsMore", func(k *kit) {
		holder, large, small := k.permits(1, 3), k.permits(3, 3, queue(long)), k.permits(1, 3, queue(long))
		k.a.gets(holder)
		k.b.waits(large, 1)
		k.a.waits(small, 2)
		k.a.releases(holder)
		k.b.gets(large)
		k.a.waits(small, 1)
	})

	s.test("TheHeadLeavingLetsTheNextInAtOnce", func(k *kit) {
		k.a.gets(k.permits(1, 3))
		large, small := k.permits(3, 3, queue(long)), k.permits(1, 3, queue(long))
		k.b.waits(large, 1)
		k.a.waits(small, 2)
		k.b.releases(large)
		k.a.seesHoldersWaiters(2, 0)
		k.a.gets(small)
	})

	s.test("AllWhoFitAreLetInAtOnce", func(k *kit) {
		holder := k.permits(3, 3)
		k.a.gets(holder)
		one, two, three, four := k.permits(1, 3, queue(long)), k.permits(1, 3, queue(long)), k.permits(1, 3, queue(long)), k.permits(1, 3, queue(long))
		for i, c := range []driver.Claim{one, two, three, four} {
			k.b.waits(c, i+1)
		}
		k.a.releases(holder)
		k.a.seesHoldersWaiters(3, 1)
		k.b.waits(four, 1)
	})

	s.test("ADeadHoldersNameGoesToTheHeadAndNotToTheNextClaim", func(k *kit) {
		k.a.gets(k.mutex(ttl(k.u)))
		first := k.mutex(queue(8 * k.u))
		k.a.waits(first, 1)
		k.past(k.u)
		k.b.refused(k.mutex())
		k.b.waits(k.mutex(queue(8*k.u)), 1)
		k.a.gets(first)
	})

	s.test("AWaiterNeedsNoOtherEventThanTheExpiry", func(k *kit) {
		k.a.gets(k.mutex(ttl(k.u)))
		waiter := k.mutex(queue(8 * k.u))
		held := k.b.waits(waiter, 1)
		if held.RetryAfter <= 0 || held.RetryAfter > k.u+k.u/4+k.s.Uncertainty {
			k.Errorf("RetryAfter = %v; want when the holder expires", held.RetryAfter)
		}
		k.past(k.u)
		k.b.gets(waiter)
	})

	s.test("SaysWhoIsInTheWayAndNotWhoWaits", func(k *kit) {
		g := k.a.gets(k.mutex())
		k.b.waits(k.mutex(queue(long)), 1)
		held := k.b.waits(k.mutex(queue(long)), 2)
		if held.Holders != 1 || held.Holder.Fence != g.Fence {
			k.Errorf("holders = %+v; want the one with the fence %d", held.Holders, g.Fence)
		}
	})
}
