package drivertest

import "github.com/pawl-go/pawl/driver"

// testMinHold: a name stays held for its minimum hold, although its holder has released
// it.
func testMinHold(s *suite) {
	s.test("KeepsTheNameHeldAfterARelease", func(k *kit) {
		c := k.mutex()
		g := k.a.gets(c)
		k.a.releasesEarly(c, 2*k.u)
		k.pass(k.u)
		held := k.b.refused(k.mutex())
		if held.Holders != 1 || held.Holder.Fence != g.Fence || !held.Holder.Released {
			k.Errorf("%+v; want the holder, released", held.Holders)
		}
		k.past(k.u)
		k.b.gets(k.mutex())
	})

	s.exact("EndsAtTheVeryInstant", func(k *kit) {
		c := k.mutex()
		k.a.gets(c)
		k.a.releasesEarly(c, k.u)
		k.past(k.u - instant)
		k.b.refused(k.mutex())
		k.past(instant)
		k.b.gets(k.mutex())
	})

	s.test("CountsFromTheGrant", func(k *kit) {
		c := k.mutex()
		k.a.gets(c)
		k.pass(k.u)
		k.a.releasesEarly(c, 2*k.u)
		k.b.refused(k.mutex())
		k.past(k.u)
		k.b.gets(k.mutex())
	})

	s.test("ShorterThanTheLeaseWasHeldIsNothing", func(k *kit) {
		c := k.mutex()
		k.a.gets(c)
		k.past(k.u)
		k.a.releasesEarly(c, k.u)
		k.b.gets(k.mutex())
	})

	s.test("MayOutlastTheTTL", func(k *kit) {
		c := k.mutex(ttl(k.u))
		k.a.gets(c)
		k.a.releasesEarly(c, 3*k.u)
		k.past(k.u)
		k.b.refused(k.mutex())
	})

	s.test("TheTokenHoldsNothingAnyMore", func(k *kit) {
		c := k.mutex()
		g := k.a.gets(c)
		k.a.releasesEarly(c, long)
		k.a.lost(c)
		k.a.cannotRelease(c)
		k.a.refused(c)
		k.b.heldBy(g.Fence)
	})

	s.test("IsForOnePermitOnly", func(k *kit) {
		one, two := k.permits(1, 2), k.permits(1, 2)
		k.a.gets(one)
		k.a.gets(two)
		k.a.releasesEarly(one, long)
		k.b.refused(k.permits(1, 2))
		k.a.releases(two)
		k.b.gets(k.permits(1, 2))
		k.b.refused(k.permits(1, 2))
	})

	s.test("EndsWithoutALockDelay", func(k *kit) {
		c := k.mutex(lockDelay(long))
		k.a.gets(c)
		k.a.releasesEarly(c, k.u)
		k.past(k.u)
		k.b.gets(k.mutex())
	})

	s.test("ThenTheQueueIsServedInOrder", func(k *kit) {
		c, waiter := k.mutex(), k.mutex(queue(8*k.u))
		k.a.gets(c)
		k.b.waits(waiter, 1)
		k.a.releasesEarly(c, k.u)
		k.b.waits(waiter, 1)
		k.past(k.u)
		k.a.refused(k.mutex())
		k.b.gets(waiter)
	})

	s.test("OfAWaiterIsOnlyLeavingTheQueue", func(k *kit) {
		holder, waiter := k.mutex(), k.mutex(queue(long))
		k.a.gets(holder)
		k.b.waits(waiter, 1)
		k.b.releasesEarly(waiter, long)
		k.a.seesHoldersWaiters(1, 0)
		k.a.releases(holder)
		k.b.gets(k.mutex())
	})

	s.test("IsShownInTheEntry", func(k *kit) {
		who := driver.Owner{Client: "done", Host: "web-1", PID: 3}
		c := k.mutex(owner(who))
		k.a.gets(c)
		if h := k.b.seesHoldersWaiters(1, 0).Holders[0]; h.Released {
			k.Errorf("%+v; want it not released yet", h)
		}
		k.a.releasesEarly(c, long)
		if h := k.b.seesHoldersWaiters(1, 0).Holders[0]; !h.Released || !h.Owner.Equal(who) {
			k.Errorf("%+v; want it released, by %+v", h, who)
		}
	})
}
