package drivertest

import (
	"github.com/pawl-go/pawl/driver"
)

func testRelease(s *suite) {
	s.test("ASecondReleaseSaysNotHeldAndChangesNothing", func(k *kit) {
		c, next := k.mutex(), k.mutex()
		k.a.gets(c)
		k.a.releases(c)
		k.a.cannotRelease(c)
		g := k.b.gets(next)
		k.a.cannotRelease(c)
		k.b.heldBy(g.Fence)
	})

	s.test("StaleReleaseDoesNotFreeTheNewHolder", func(k *kit) {
		old, next := k.mutex(ttl(k.u)), k.mutex()
		k.a.gets(old)
		k.past(k.u)
		g := k.b.gets(next)
		k.a.cannotRelease(old)
		k.b.heldBy(g.Fence)
		k.b.keeps(next)
	})

	s.test("OfAnExpiredLeaseSaysNotHeld", func(k *kit) {
		c := k.mutex(ttl(k.u))
		k.a.gets(c)
		k.past(k.u)
		k.a.cannotRelease(c)
	})

	s.test("OfAnUnknownNameSaysNotHeldAndCreatesNothing", func(k *kit) {
		k.a.cannotRelease(k.mutex())
		if e := k.a.seesHoldersWaiters(0, 0); e.Fence != 0 {
			k.Errorf("%+v; want nothing", e)
		}
		k.b.gets(k.mutex())
	})

	s.test("WorksFromAnotherClient", func(k *kit) {
		c := k.mutex()
		k.a.gets(c)
		k.b.releases(c)
		k.a.lost(c)
	})

	s.test("FreesItsOwnPermitOnly", func(k *kit) {
		mine, other := k.permits(2, 3), k.permits(1, 3)
		k.a.gets(mine)
		g := k.b.gets(other)
		k.a.releases(mine)
		k.b.heldBy(g.Fence)
		k.b.keeps(other)
	})

	s.test("TheTokenMayClaimAgainAndIsANewGrant", func(k *kit) {
		c := k.mutex()
		first := k.a.gets(c)
		k.a.releases(c)
		if second := k.a.gets(c); second.Fence <= first.Fence {
			k.Errorf("fences %d, then %d; want them to rise", first.Fence, second.Fence)
		}
	})

	s.test("TheZeroTokenReleasesNothing", func(k *kit) {
		c := k.mutex()
		g := k.a.gets(c)
		nobody := c
		nobody.Token = driver.Token{}
		k.b.cannotRelease(nobody)
		k.a.releasesEarly(c, long) // a lease that is kept has no token, and must not be found by the zero token
		k.b.cannotRelease(nobody)
		k.b.heldBy(g.Fence)
	})

	s.test("LeavesTheQueue", func(k *kit) {
		holder, first, second := k.mutex(), k.mutex(queue(long)), k.mutex(queue(long))
		g := k.a.gets(holder)
		k.b.waits(first, 1)
		k.a.waits(second, 2)
		k.b.releases(first)
		k.b.cannotRelease(first)
		k.a.seesHoldersWaiters(1, 1)
		k.a.waits(second, 1)
		k.a.heldBy(g.Fence)
	})

	s.test("PassesTheNameToTheHeadOfTheQueueAtOnce", func(k *kit) {
		holder, first, second := k.mutex(), k.mutex(queue(long)), k.mutex(queue(long))
		g := k.a.gets(holder)
		k.b.waits(first, 1)
		k.b.waits(second, 2)
		k.a.releases(holder)
		e := k.a.seesHoldersWaiters(1, 1) // before any waiter asked again
		if h := e.Holders[0]; h.Fence <= g.Fence {
			k.Errorf("passed on with the fence %d after %d", h.Fence, g.Fence)
		}
		if got := k.b.gets(first); got.Fence != e.Holders[0].Fence {
			k.Errorf("the head of the queue got the fence %d, not %d", got.Fence, e.Holders[0].Fence)
		}
		k.b.waits(second, 1)
	})

	s.test("PassesOnAGrantThatNeverReachedItsWaiter", func(k *kit) {
		// A waiter that is cancelled while it is promoted releases its token, and that
		// must not lose the turn.
		holder, first, second := k.mutex(), k.mutex(queue(long)), k.mutex(queue(long))
		k.a.gets(holder)
		k.a.waits(first, 1)
		k.b.waits(second, 2)
		k.a.releases(holder)
		k.a.releases(first)
		k.b.gets(second)
		k.b.seesHoldersWaiters(1, 0)
	})

	s.test("CancellingAHundredWaitersLeavesNothing", func(k *kit) {
		holder := k.mutex()
		k.a.gets(holder)
		var waiters []driver.Claim
		for i := range s.fewer(100) {
			c := k.mutex(queue(long))
			k.b.waits(c, i+1)
			waiters = append(waiters, c)
		}
		for i := range waiters { // from the middle outwards
			k.b.releases(waiters[(i*37+50)%len(waiters)])
		}
		k.a.seesHoldersWaiters(1, 0)
		k.a.releases(holder)
		k.b.gets(k.mutex())
	})
}
