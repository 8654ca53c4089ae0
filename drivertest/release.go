package drivertest

import (
	"github.com/pawl-go/pawl/driver"
)

func testRelease(s *suite) {
	s.test("ASecondReleaseSaysNotHeldAndChangesNothing", func(k *kit) {
		c, next := k.mutex(), k.mutex()
		k.a.wantGranted(c)
		k.a.mustRelease(c)
		k.a.wantNothingToRelease(c)
		g := k.b.wantGranted(next)
		k.a.wantNothingToRelease(c)
		k.b.wantFences(g.Fence)
	})

	s.test("StaleReleaseDoesNotFreeTheNewHolder", func(k *kit) {
		old, next := k.mutex(ttl(k.unit)), k.mutex()
		k.a.wantGranted(old)
		k.advancePast(k.unit)
		g := k.b.wantGranted(next)
		k.a.wantNothingToRelease(old)
		k.b.wantFences(g.Fence)
		k.b.mustRenew(next)
	})

	s.test("OfAnExpiredLeaseSaysNotHeld", func(k *kit) {
		c := k.mutex(ttl(k.unit))
		k.a.wantGranted(c)
		k.advancePast(k.unit)
		k.a.wantNothingToRelease(c)
	})

	s.test("OfAnUnknownNameSaysNotHeldAndCreatesNothing", func(k *kit) {
		k.a.wantNothingToRelease(k.mutex())
		if e := k.a.wantHoldersWaiters(0, 0); e.Fence != 0 {
			k.Errorf("%+v; want nothing", e)
		}
		k.b.wantGranted(k.mutex())
	})

	s.test("WorksFromAnotherClient", func(k *kit) {
		c := k.mutex()
		k.a.wantGranted(c)
		k.b.mustRelease(c)
		k.a.wantLost(c)
	})

	s.test("FreesItsOwnPermitOnly", func(k *kit) {
		first, other := k.permits(2, 3), k.permits(1, 3)
		k.a.wantGranted(first)
		g := k.b.wantGranted(other)
		k.a.mustRelease(first)
		k.b.wantFences(g.Fence)
		k.b.mustRenew(other)
	})

	s.test("TheTokenMayClaimAgainAndIsANewGrant", func(k *kit) {
		c := k.mutex()
		first := k.a.wantGranted(c)
		k.a.mustRelease(c)
		if second := k.a.wantGranted(c); second.Fence <= first.Fence {
			k.Errorf("fences %d, then %d; want them to rise", first.Fence, second.Fence)
		}
	})

	s.test("TheZeroTokenReleasesNothing", func(k *kit) {
		c := k.mutex()
		g := k.a.wantGranted(c)
		zero := c
		zero.Token = driver.Token{}
		k.b.wantNothingToRelease(zero)
		k.a.releaseWithMinHold(c, long) // the kept lease has the zero token, which must not match it
		k.b.wantNothingToRelease(zero)
		k.b.wantFences(g.Fence)
	})

	s.test("LeavesTheQueue", func(k *kit) {
		holder, first, second := k.mutex(), k.mutex(queue(long)), k.mutex(queue(long))
		g := k.a.wantGranted(holder)
		k.b.wantPlace(first, 1)
		k.a.wantPlace(second, 2)
		k.b.mustRelease(first)
		k.b.wantNothingToRelease(first)
		k.a.wantHoldersWaiters(1, 1)
		k.a.wantPlace(second, 1)
		k.a.wantFences(g.Fence)
	})

	s.test("PassesTheNameToTheHeadOfTheQueueAtOnce", func(k *kit) {
		holder, first, second := k.mutex(), k.mutex(queue(long)), k.mutex(queue(long))
		g := k.a.wantGranted(holder)
		k.b.wantPlace(first, 1)
		k.b.wantPlace(second, 2)
		k.a.mustRelease(holder)
		e := k.a.wantHoldersWaiters(1, 1) // before any waiter repeats its claim
		if h := e.Holders[0]; h.Fence <= g.Fence {
			k.Errorf("granted to the waiter with the fence %d after %d", h.Fence, g.Fence)
		}
		if got := k.b.wantGranted(first); got.Fence != e.Holders[0].Fence {
			k.Errorf("the head of the queue got the fence %d, not %d", got.Fence, e.Holders[0].Fence)
		}
		k.b.wantPlace(second, 1)
	})

	s.test("PassesOnAGrantThatNeverReachedItsWaiter", func(k *kit) {
		// A waiter that is canceled while it is granted the name releases its token. The
		// next waiter must get the name.
		holder, first, second := k.mutex(), k.mutex(queue(long)), k.mutex(queue(long))
		k.a.wantGranted(holder)
		k.a.wantPlace(first, 1)
		k.b.wantPlace(second, 2)
		k.a.mustRelease(holder)
		k.a.mustRelease(first)
		k.b.wantGranted(second)
		k.b.wantHoldersWaiters(1, 0)
	})

	s.test("CancellingAHundredWaitersLeavesNothing", func(k *kit) {
		holder := k.mutex()
		k.a.wantGranted(holder)
		var waiters []driver.Claim
		for i := range s.fewerIfFar(100) {
			c := k.mutex(queue(long))
			k.b.wantPlace(c, i+1)
			waiters = append(waiters, c)
		}
		for i := range waiters { // in a mixed order
			k.b.mustRelease(waiters[(i*37+50)%len(waiters)])
		}
		k.a.wantHoldersWaiters(1, 0)
		k.a.mustRelease(holder)
		k.b.wantGranted(k.mutex())
	})
}
