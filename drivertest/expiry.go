package drivertest

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

func testExpiry(s *suite) {
	s.test("ALeaseEndsByItself", func(k *kit) {
		old := k.mutex(ttl(k.unit))
		first := k.a.wantGranted(old)
		k.advancePast(k.unit)
		if next := k.b.wantGranted(k.mutex()); next.Fence <= first.Fence {
			k.Errorf("fences %d, then %d; want them to rise", first.Fence, next.Fence)
		}
		k.a.wantLost(old)
	})

	s.testExact("ALeaseIsOverAtTheVeryInstant", func(k *kit) {
		c := k.mutex(ttl(k.unit))
		k.a.wantGranted(c)
		k.advancePast(k.unit - clockStep)
		k.b.wantHeld(k.mutex())
		k.advancePast(clockStep)
		k.b.wantGranted(k.mutex())
	})

	s.testExact("ARenewalAtTheVeryInstantIsTooLate", func(k *kit) {
		c := k.mutex(ttl(k.unit))
		k.a.wantGranted(c)
		k.advancePast(k.unit - clockStep)
		k.a.mustRenew(c)
		k.advancePast(k.unit)
		k.a.wantLost(c)
	})

	s.testExact("AReleaseAtTheVeryInstantIsTooLate", func(k *kit) {
		c := k.mutex(ttl(k.unit))
		k.a.wantGranted(c)
		k.advancePast(k.unit)
		k.a.wantNothingToRelease(c)
	})

	s.testExact("AClaimRepeatedAtTheVeryInstantIsANewGrant", func(k *kit) {
		c := k.mutex(ttl(k.unit))
		first := k.a.wantGranted(c)
		k.advancePast(k.unit)
		if again := k.a.wantGranted(c); again.Fence <= first.Fence {
			k.Errorf("fences %d, then %d; want a new grant", first.Fence, again.Fence)
		}
	})

	s.test("ExpiredLeasesAndPlacesAreNotShown", func(k *kit) {
		k.a.wantGranted(k.permits(1, 2, ttl(k.unit)))
		g := k.a.wantGranted(k.permits(1, 2))
		k.a.wantPlace(k.permits(1, 2, queue(k.unit)), 1)
		k.advancePast(k.unit)
		k.b.wantFences(g.Fence)
		k.b.wantHoldersWaiters(1, 0)
	})

	s.test("AnExpiredHolderIsNotNamedAsInTheWay", func(k *kit) {
		k.a.wantGranted(k.permits(1, 2, ttl(k.unit)))
		g := k.a.wantGranted(k.permits(1, 2))
		k.advancePast(k.unit)
		held := k.b.wantHeld(k.mutex())
		if held.Holders != 1 || held.Holder.Fence != g.Fence {
			k.Errorf("%+v; want only the holder with the fence %d", held.Holders, g.Fence)
		}
	})

	s.test("EachPermitHasATimeOfItsOwn", func(k *kit) {
		dead, alive := k.permits(1, 2, ttl(2*k.unit)), k.permits(1, 2, ttl(2*k.unit))
		k.a.wantGranted(dead)
		k.b.wantGranted(alive)
		k.advance(k.unit)
		k.b.mustRenew(alive)
		k.advancePast(k.unit)
		k.a.wantLost(dead)
		k.a.wantGranted(k.permits(1, 2))
		k.b.mustRenew(alive)
	})

	s.test("AShorterLeaseOrPlaceDoesNotEndALongerOne", func(k *kit) {
		// An entry lasts as long as its longest lease or place, not as long as the last
		// one written.
		c := k.permits(1, 3)
		g := k.a.wantGranted(c)
		short := k.permits(1, 3, ttl(k.unit))
		k.b.wantGranted(short)
		k.b.mustRenew(short)
		k.b.wantPlace(k.mutex(queue(k.unit/2)), 1)
		k.advancePast(2 * k.unit)
		k.b.wantFences(g.Fence)
		k.a.mustRenew(c)
	})

	s.test("RetryAfterIsWhenTheHolderExpires", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(k.unit)))
		k.wantRetryAfter(k.mutex(), k.unit)
	})

	s.test("RetryAfterCountsTheLockDelay", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(k.unit), lockDelay(k.unit)))
		k.wantRetryAfter(k.mutex(), 2*k.unit)
	})

	s.test("RetryAfterIsWhenTheNameOpens", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(k.unit), lockDelay(k.unit)))
		k.advancePast(k.unit)
		k.wantRetryAfter(k.mutex(), k.unit)
	})

	s.test("RetryAfterIsWhenTheHeadOfTheQueueLosesItsPlace", func(k *kit) {
		k.a.wantGranted(k.permits(1, 3))
		k.a.wantPlace(k.permits(3, 3, queue(k.unit)), 1)
		k.wantRetryAfter(k.permits(1, 3), k.unit)
	})

	s.test("RetryAfterIsWhenTheFirstOfSeveralHoldersExpires", func(k *kit) {
		k.a.wantGranted(k.permits(1, 2))
		k.a.wantGranted(k.permits(1, 2, ttl(k.unit)))
		k.wantRetryAfter(k.permits(1, 2), k.unit)
	})

	s.test("ARefusalCountsTheHoldersAndNamesTheOneThatEndsFirst", func(k *kit) {
		k.a.wantGranted(k.permits(1, 4))
		first := k.a.wantGranted(k.permits(1, 4, ttl(long/2)))
		k.a.wantGranted(k.permits(2, 4))
		k.a.wantPlace(k.permits(1, 4, queue(k.unit)), 1) // its place ends first, but is no lease
		held := k.b.wantHeld(k.mutex())
		if held.Holders != 3 || held.Holder.Fence != first.Fence || held.Holder.Permits != 1 || held.Holder.Limit != 4 {
			k.Errorf("%d holders, the first %+v; want 3, the first the one with the fence %d", held.Holders, held.Holder, first.Fence)
		}
	})

	s.test("RetryAfterCountsTheLockDelayOfTheFirstThatExpires", func(k *kit) {
		k.a.wantGranted(k.permits(1, 2, ttl(2*k.unit)))
		k.a.wantGranted(k.permits(1, 2, ttl(k.unit), lockDelay(2*k.unit)))
		k.wantRetryAfter(k.permits(1, 2), 3*k.unit) // the second lease closes the name beyond the end of the first
	})

	s.test("ManyOtherNamesDoNotDelayIt", func(k *kit) {
		for i := range s.fewerIfFar(100) {
			k.a.wantGranted(k.mutex(named(k.nthName(i)), ttl(k.unit)))
		}
		k.a.wantGranted(k.mutex(ttl(k.unit)))
		k.advancePast(k.unit)
		k.b.wantGranted(k.mutex())
	})

	s.test("TheLongestTTLIsKept", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(driver.MaxTTL)))
		if left := k.b.wantHeld(k.mutex()).Holder.ExpiresIn; left < driver.MaxTTL-long || left > driver.MaxTTL+long {
			k.Errorf("expires in %v, want %v", left, driver.MaxTTL)
		}
	})
}

// wantRetryAfter requires that the claim is refused with a RetryAfter of about d, and
// granted after that time.
func (k *kit) wantRetryAfter(c driver.Claim, d time.Duration) {
	k.Helper()
	held := k.b.wantHeld(c)
	if held.RetryAfter <= 0 || held.RetryAfter > d+k.unit/2 || k.suite.Clock != nil && held.RetryAfter != d {
		k.Fatalf("RetryAfter = %v, want %v", held.RetryAfter, d)
	}
	k.advancePast(held.RetryAfter)
	k.b.wantGranted(c)
}
