package drivertest

import "github.com/pawl-go/pawl/driver"

func testLockDelay(s *suite) {
	s.test("KeepsTheNameClosedAfterAnExpiry", func(k *kit) {
		k.a.gets(k.mutex(ttl(k.u), lockDelay(2*k.u)))
		k.past(k.u)
		held := k.b.refused(k.mutex())
		if held.ClosedFor <= 0 || held.ClosedFor > 2*k.u || held.Holders != 0 {
			k.Errorf("%+v; want no holders, and closed for another %v", held, 2*k.u)
		}
		if e := k.a.seesHoldersWaiters(0, 0); e.ClosedFor <= 0 || e.ClosedFor > 2*k.u {
			k.Errorf("%+v; want it closed for another %v", e, 2*k.u)
		}
		k.past(2 * k.u)
		k.b.gets(k.mutex())
	})

	s.exact("OpensAtTheVeryInstant", func(k *kit) {
		k.a.gets(k.mutex(ttl(k.u), lockDelay(k.u)))
		k.past(k.u)
		k.b.refused(k.mutex())
		k.past(k.u - instant)
		k.b.refused(k.mutex())
		k.past(instant)
		k.b.gets(k.mutex())
	})

	s.test("IsNotForARelease", func(k *kit) {
		c := k.mutex(lockDelay(long))
		k.a.gets(c)
		k.a.releases(c)
		k.b.gets(k.mutex())
	})

	s.test("CountsFromTheExpiryWheneverItIsFound", func(k *kit) {
		k.a.gets(k.mutex(ttl(k.u), lockDelay(k.u)))
		k.past(2 * k.u)
		k.b.gets(k.mutex())
	})

	s.test("ThenTheQueueIsServedInOrder", func(k *kit) {
		k.a.gets(k.mutex(ttl(k.u), lockDelay(k.u)))
		first, second := k.mutex(queue(8*k.u)), k.mutex(queue(8*k.u))
		k.a.waits(first, 1)
		k.b.waits(second, 2)
		k.past(k.u)
		k.b.refused(k.mutex())
		k.past(k.u)
		k.b.waits(second, 1)
		k.a.gets(first)
	})

	s.test("IsKeptByAPromotedClaim", func(k *kit) {
		holder := k.mutex()
		k.a.gets(holder)
		k.b.waits(k.mutex(queue(k.u), lockDelay(long)), 1)
		k.a.releases(holder)
		k.past(k.u)
		held := k.a.refused(k.mutex())
		if held.ClosedFor <= long/2 || held.Holders != 0 {
			k.Errorf("%+v; want it closed for another %v", held, long)
		}
	})

	s.test("IsNotForWaitersThatWereNotGranted", func(k *kit) {
		holder := k.mutex()
		k.a.gets(holder)
		k.b.waits(k.mutex(queue(k.u), lockDelay(long)), 1)
		k.past(k.u)
		k.a.releases(holder)
		k.a.gets(k.mutex())
	})

	s.test("OfOneClosesTheNameForOthersAndNotForThoseWhoHoldIt", func(k *kit) {
		k.a.gets(k.permits(1, 3, ttl(k.u), lockDelay(long)))
		alive := k.permits(1, 3)
		k.b.gets(alive)
		k.past(k.u)
		k.a.refused(k.permits(1, 3))
		k.b.keeps(alive)
		k.b.releases(alive)
		k.a.refused(k.permits(1, 3))
	})

	s.test("TheLongerOfTwoCounts", func(k *kit) {
		k.a.gets(k.permits(1, 3, ttl(k.u), lockDelay(long)))
		k.a.gets(k.permits(1, 3, ttl(2*k.u), lockDelay(k.u/2)))
		k.past(k.u)
		k.b.refused(k.permits(1, 3)) // finds the first
		k.past(k.u)
		k.b.refused(k.permits(1, 3)) // finds the second
		k.past(k.u / 2)
		if held := k.b.refused(k.permits(1, 3)); held.ClosedFor <= long/2 {
			k.Errorf("closed for %v, want about %v", held.ClosedFor, long)
		}
	})

	s.test("AWaiterCanLeaveAClosedName", func(k *kit) {
		k.a.gets(k.mutex(ttl(k.u), lockDelay(long)))
		waiter := k.mutex(queue(long))
		k.b.waits(waiter, 1)
		k.past(k.u)
		k.b.releases(waiter)
		k.b.seesHoldersWaiters(0, 0)
		k.b.waits(k.permits(1, driver.Unlimited, queue(long)), 1)
	})
}
