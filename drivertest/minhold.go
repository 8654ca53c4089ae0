package drivertest

import "github.com/pawl-go/pawl/driver"

// testMinHold tests that a released name stays held for its minimum hold.
func testMinHold(s *suite) {
	s.test("KeepsTheNameHeldAfterARelease", func(k *kit) {
		c := k.mutex()
		g := k.a.wantGranted(c)
		k.a.releaseWithMinHold(c, 2*k.unit)
		k.advance(k.unit)
		held := k.b.wantHeld(k.mutex())
		if held.Holders != 1 || held.Holder.Fence != g.Fence || !held.Holder.Released {
			k.Errorf("%+v; want the holder, released", held.Holders)
		}
		k.advancePast(k.unit)
		k.b.wantGranted(k.mutex())
	})

	s.testExact("EndsAtTheVeryInstant", func(k *kit) {
		c := k.mutex()
		k.a.wantGranted(c)
		k.a.releaseWithMinHold(c, k.unit)
		k.advancePast(k.unit - clockStep)
		k.b.wantHeld(k.mutex())
		k.advancePast(clockStep)
		k.b.wantGranted(k.mutex())
	})

	s.test("CountsFromTheGrant", func(k *kit) {
		c := k.mutex()
		k.a.wantGranted(c)
		k.advance(k.unit)
		k.a.releaseWithMinHold(c, 2*k.unit)
		k.b.wantHeld(k.mutex())
		k.advancePast(k.unit)
		k.b.wantGranted(k.mutex())
	})

	s.test("HasNoEffectAfterALongerHold", func(k *kit) {
		c := k.mutex()
		k.a.wantGranted(c)
		k.advancePast(k.unit)
		k.a.releaseWithMinHold(c, k.unit)
		k.b.wantGranted(k.mutex())
	})

	s.test("MayOutlastTheTTL", func(k *kit) {
		c := k.mutex(ttl(k.unit))
		k.a.wantGranted(c)
		k.a.releaseWithMinHold(c, 3*k.unit)
		k.advancePast(k.unit)
		k.b.wantHeld(k.mutex())
	})

	s.test("TheTokenHoldsNothingAnyMore", func(k *kit) {
		c := k.mutex()
		g := k.a.wantGranted(c)
		k.a.releaseWithMinHold(c, long)
		k.a.wantLost(c)
		k.a.wantNothingToRelease(c)
		k.a.wantHeld(c)
		k.b.wantFences(g.Fence)
	})

	s.test("IsForOnePermitOnly", func(k *kit) {
		one, two := k.permits(1, 2), k.permits(1, 2)
		k.a.wantGranted(one)
		k.a.wantGranted(two)
		k.a.releaseWithMinHold(one, long)
		k.b.wantHeld(k.permits(1, 2))
		k.a.mustRelease(two)
		k.b.wantGranted(k.permits(1, 2))
		k.b.wantHeld(k.permits(1, 2))
	})

	s.test("EndsWithoutALockDelay", func(k *kit) {
		c := k.mutex(lockDelay(long))
		k.a.wantGranted(c)
		k.a.releaseWithMinHold(c, k.unit)
		k.advancePast(k.unit)
		k.b.wantGranted(k.mutex())
	})

	s.test("TheQueueIsServedInOrderAfterIt", func(k *kit) {
		c, waiter := k.mutex(), k.mutex(queue(8*k.unit))
		k.a.wantGranted(c)
		k.b.wantPlace(waiter, 1)
		k.a.releaseWithMinHold(c, k.unit)
		k.b.wantPlace(waiter, 1)
		k.advancePast(k.unit)
		k.a.wantHeld(k.mutex())
		k.b.wantGranted(waiter)
	})

	s.test("DoesNotApplyToAWaiterThatLeaves", func(k *kit) {
		holder, waiter := k.mutex(), k.mutex(queue(long))
		k.a.wantGranted(holder)
		k.b.wantPlace(waiter, 1)
		k.b.releaseWithMinHold(waiter, long)
		k.a.wantHoldersWaiters(1, 0)
		k.a.mustRelease(holder)
		k.b.wantGranted(k.mutex())
	})

	s.test("IsShownInTheEntry", func(k *kit) {
		who := driver.Owner{Client: "done", Host: "web-1", PID: 3}
		c := k.mutex(owner(who))
		k.a.wantGranted(c)
		if h := k.b.wantHoldersWaiters(1, 0).Holders[0]; h.Released {
			k.Errorf("%+v; want it not released yet", h)
		}
		k.a.releaseWithMinHold(c, long)
		if h := k.b.wantHoldersWaiters(1, 0).Holders[0]; !h.Released || !h.Owner.Equal(who) {
			k.Errorf("%+v; want it released, by %+v", h, who)
		}
	})
}
