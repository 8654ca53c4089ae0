package drivertest

import "github.com/pawl-go/pawl/driver"

func testLockDelay(s *suite) {
	s.test("KeepsTheNameClosedAfterAnExpiry", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(k.unit), lockDelay(2*k.unit)))
		k.advancePast(k.unit)
		held := k.b.wantHeld(k.mutex())
		if held.ClosedFor <= 0 || held.ClosedFor > 2*k.unit || held.Holders != 0 {
			k.Errorf("%+v; want no holders, and closed for another %v", held, 2*k.unit)
		}
		if e := k.a.wantHoldersWaiters(0, 0); e.ClosedFor <= 0 || e.ClosedFor > 2*k.unit {
			k.Errorf("%+v; want it closed for another %v", e, 2*k.unit)
		}
		k.advancePast(2 * k.unit)
		k.b.wantGranted(k.mutex())
	})

	s.testExact("OpensAtTheVeryInstant", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(k.unit), lockDelay(k.unit)))
		k.advancePast(k.unit)
		k.b.wantHeld(k.mutex())
		k.advancePast(k.unit - clockStep)
		k.b.wantHeld(k.mutex())
		k.advancePast(clockStep)
		k.b.wantGranted(k.mutex())
	})

	s.test("DoesNotFollowARelease", func(k *kit) {
		c := k.mutex(lockDelay(long))
		k.a.wantGranted(c)
		k.a.mustRelease(c)
		k.b.wantGranted(k.mutex())
	})

	s.test("CountsFromTheExpiryWheneverItIsFound", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(k.unit), lockDelay(k.unit)))
		k.advancePast(2 * k.unit)
		k.b.wantGranted(k.mutex())
	})

	s.test("TheQueueIsServedInOrderAfterIt", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(k.unit), lockDelay(k.unit)))
		first, second := k.mutex(queue(8*k.unit)), k.mutex(queue(8*k.unit))
		k.a.wantPlace(first, 1)
		k.b.wantPlace(second, 2)
		k.advancePast(k.unit)
		k.b.wantHeld(k.mutex())
		k.advancePast(k.unit)
		k.b.wantPlace(second, 1)
		k.a.wantGranted(first)
	})

	s.test("IsKeptByAPromotedClaim", func(k *kit) {
		holder := k.mutex()
		k.a.wantGranted(holder)
		k.b.wantPlace(k.mutex(queue(k.unit), lockDelay(long)), 1)
		k.a.mustRelease(holder)
		k.advancePast(k.unit)
		held := k.a.wantHeld(k.mutex())
		if held.ClosedFor <= long/2 || held.Holders != 0 {
			k.Errorf("%+v; want it closed for another %v", held, long)
		}
	})

	s.test("DoesNotFollowAPlaceThatExpires", func(k *kit) {
		holder := k.mutex()
		k.a.wantGranted(holder)
		k.b.wantPlace(k.mutex(queue(k.unit), lockDelay(long)), 1)
		k.advancePast(k.unit)
		k.a.mustRelease(holder)
		k.a.wantGranted(k.mutex())
	})

	s.test("ClosesTheNameForNewClaimsAndNotForOtherHolders", func(k *kit) {
		k.a.wantGranted(k.permits(1, 3, ttl(k.unit), lockDelay(long)))
		alive := k.permits(1, 3)
		k.b.wantGranted(alive)
		k.advancePast(k.unit)
		k.a.wantHeld(k.permits(1, 3))
		k.b.mustRenew(alive)
		k.b.mustRelease(alive)
		k.a.wantHeld(k.permits(1, 3))
	})

	s.test("TheLongerOfTwoCounts", func(k *kit) {
		k.a.wantGranted(k.permits(1, 3, ttl(k.unit), lockDelay(long)))
		k.a.wantGranted(k.permits(1, 3, ttl(2*k.unit), lockDelay(k.unit/2)))
		k.advancePast(k.unit)
		k.b.wantHeld(k.permits(1, 3)) // notices the first expiry
		k.advancePast(k.unit)
		k.b.wantHeld(k.permits(1, 3)) // notices the second expiry
		k.advancePast(k.unit / 2)
		if held := k.b.wantHeld(k.permits(1, 3)); held.ClosedFor <= long/2 {
			k.Errorf("closed for %v, want about %v", held.ClosedFor, long)
		}
	})

	s.test("AWaiterCanLeaveAClosedName", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(k.unit), lockDelay(long)))
		waiter := k.mutex(queue(long))
		k.b.wantPlace(waiter, 1)
		k.advancePast(k.unit)
		k.b.mustRelease(waiter)
		k.b.wantHoldersWaiters(0, 0)
		k.b.wantPlace(k.permits(1, driver.Unlimited, queue(long)), 1)
	})
}
