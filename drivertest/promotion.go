package drivertest

import (
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
)

// testPromotion tests a name that was granted to a waiter that does not know it yet.
func testPromotion(s *suite) {
	// promote makes a holder release the name, which is then granted to waiter.
	promote := func(k *kit, waiter driver.Claim) {
		k.Helper()
		holder := k.mutex()
		k.a.wantGranted(holder)
		k.b.wantPlace(waiter, 1)
		k.a.mustRelease(holder)
		k.a.wantHoldersWaiters(1, 0)
	}

	s.test("LastsAsLongAsThePlace", func(k *kit) {
		waiter := k.mutex(queue(2 * k.unit))
		promote(k, waiter)
		k.advance(k.unit + k.unit/4)
		k.a.wantHeld(k.mutex())
		k.advancePast(k.unit)
		k.a.wantGranted(k.mutex())
		k.b.wantLost(waiter)
	})

	s.testExact("IsOverAtTheVeryInstant", func(k *kit) {
		waiter := k.mutex(queue(k.unit))
		promote(k, waiter)
		k.advancePast(k.unit - clockStep)
		k.a.wantHeld(k.mutex())
		k.advancePast(clockStep)
		k.a.wantGranted(k.mutex())
		k.b.wantLost(waiter)
	})

	// So a dead waiter costs the others only its QueueTTL. A live waiter relies on the
	// grant for its QueueTTL from the sending of its last claim. The grant lasts at least
	// as long, because the place began when that claim arrived.
	s.test("LastsNoLongerThanThePlaceWouldHave", func(k *kit) {
		holder, waiter := k.mutex(), k.mutex(queue(2*k.unit))
		k.a.wantGranted(holder)
		k.b.wantPlace(waiter, 1)
		k.advance(k.unit)
		k.a.mustRelease(holder)
		k.a.wantHeld(k.mutex())
		k.advancePast(k.unit + k.unit/4)
		k.a.wantGranted(k.mutex())
		k.b.wantLost(waiter)
	})

	s.test("TheNextAcquireExtendsItToATTL", func(k *kit) {
		waiter := k.mutex(queue(k.unit), ttl(4*k.unit))
		promote(k, waiter)
		k.b.wantGranted(waiter)
		k.advance(2 * k.unit)
		k.a.wantHeld(k.mutex())
		k.advancePast(2 * k.unit)
		k.a.wantGranted(k.mutex())
	})

	s.test("TheNextRenewalExtendsItToATTL", func(k *kit) {
		waiter := k.mutex(queue(k.unit), ttl(4*k.unit))
		promote(k, waiter)
		k.b.mustRenew(waiter)
		k.advance(2 * k.unit)
		k.a.wantHeld(k.mutex())
		k.advancePast(2 * k.unit)
		k.a.wantGranted(k.mutex())
	})

	s.test("RepeatedClaimsGetTheSameGrant", func(k *kit) {
		waiter := k.mutex(queue(long), fences(4))
		promote(k, waiter)
		first := k.b.wantGranted(waiter)
		if again := k.a.wantGranted(waiter); again.Fence != first.Fence || again.Fences != first.Fences {
			k.Errorf("the repeat got %+v, the first %+v", again, first)
		}
		k.a.wantFences(first.Fence)
	})

	s.test("KeepsTheClaimsWeightAndOwner", func(k *kit) {
		who := basictest.FullOwner()
		promote(k, k.permits(2, 3, queue(long), owner(who)))
		h := k.onlyHolder(k.a.entry(k.name).Holders)
		if h.Permits != 2 || h.Limit != 3 || !h.Owner.Equal(who) {
			k.Errorf("%+v; want 2 of 3 by %+v", h, who)
		}
		k.a.wantGranted(k.permits(1, 3))
	})

	s.test("HasTheTTLOfItsClaim", func(k *kit) {
		for i, kind := range []func(...option) driver.Claim{k.mutex, k.reader} {
			name := k.nthName(i)
			holder, waiter := k.mutex(named(name)), kind(named(name), queue(long), ttl(2*long))
			k.a.wantGranted(holder)
			k.b.wantPlace(waiter, 1)
			waiter.TTL = 3 * long
			k.b.wantPlace(waiter, 1) // the TTL of the last repeat counts
			k.a.mustRelease(holder)
			if h := k.onlyHolder(k.a.entry(name).Holders); h.TTL != waiter.TTL || h.ExpiresIn > 2*long {
				k.Errorf("%+v; want the TTL %v, and the time of its place, %v", h, waiter.TTL, long)
			}
		}
	})

	s.test("AnExpiredGrantPassesToTheNextWaiter", func(k *kit) {
		holder, dead, alive := k.mutex(), k.mutex(queue(k.unit)), k.mutex(queue(long))
		k.a.wantGranted(holder)
		k.a.wantPlace(dead, 1)
		k.b.wantPlace(alive, 2)
		k.a.mustRelease(holder)
		k.advancePast(k.unit)
		k.a.wantHeld(k.mutex()) // this claim grants the name to the next waiter
		g := k.b.wantGranted(alive)
		k.a.wantFences(g.Fence)
		k.a.wantLost(dead)
	})
}
