package drivertest

// testPlace: how long a place in the queue lasts.
func testPlace(s *suite) {
	s.test("EachRepeatKeepsItForAnotherQueueTTL", func(k *kit) {
		k.a.gets(k.mutex())
		first, second := k.mutex(queue(2*k.u)), k.mutex(queue(long))
		k.a.waits(first, 1)
		k.b.waits(second, 2)
		for range 3 {
			k.pass(k.u)
			k.a.waits(first, 1)
		}
		k.pass(k.u + k.u/4)
		k.b.waits(second, 2)
		k.past(k.u)
		k.b.waits(second, 1)
	})

	s.test("NotKeptIsLostAndTheRepeatJoinsAtTheEnd", func(k *kit) {
		k.a.gets(k.mutex())
		first, second := k.mutex(queue(k.u)), k.mutex(queue(long))
		k.a.waits(first, 1)
		k.b.waits(second, 2)
		k.past(k.u)
		k.a.waits(first, 2)
		k.b.waits(second, 1)
	})

	s.exact("IsLostAtTheVeryInstant", func(k *kit) {
		k.a.gets(k.mutex())
		first, second := k.mutex(queue(k.u)), k.mutex(queue(long))
		k.a.waits(first, 1)
		k.b.waits(second, 2)
		k.past(k.u - instant)
		k.b.waits(second, 2)
		k.past(instant)
		k.b.waits(second, 1)
	})

	s.test("NotKeptHoldsUpATryNoLonger", func(k *kit) {
		k.a.gets(k.permits(1, 3))
		k.b.waits(k.permits(3, 3, queue(k.u)), 1)
		k.a.refused(k.permits(1, 3))
		k.past(k.u)
		k.a.gets(k.permits(1, 3))
	})

	s.test("ADeadHeadLetsTheNextIn", func(k *kit) {
		k.a.gets(k.permits(1, 3))
		dead, small := k.permits(3, 3, queue(k.u)), k.permits(1, 3, queue(long))
		k.b.waits(dead, 1)
		k.a.waits(small, 2)
		k.past(k.u)
		k.a.gets(small)
		k.b.cannotRelease(dead)
	})

	s.test("LostIsNotThereToRelease", func(k *kit) {
		k.a.gets(k.mutex())
		waiter := k.mutex(queue(k.u))
		k.b.waits(waiter, 1)
		k.past(k.u)
		k.b.cannotRelease(waiter)
		k.a.seesHoldersWaiters(1, 0)
	})

	s.test("ADeadWaiterCostsTheOthersNoMoreThanItsQueueTTL", func(k *kit) {
		holder, dead, alive := k.mutex(), k.mutex(queue(k.u)), k.mutex(queue(long))
		k.a.gets(holder)
		k.a.waits(dead, 1)
		k.b.waits(alive, 2)
		k.a.releases(holder) // to the dead one, which never asks again
		k.b.waits(alive, 1)
		k.past(k.u)
		k.b.gets(alive)
	})

	s.test("ARepeatWithATryDoesNotLoseIt", func(k *kit) {
		// A wait that ends repeats its claim without Queue, then releases: the repeat
		// must not lose the place or grant.
		k.a.gets(k.mutex())
		waiter, second := k.mutex(queue(long)), k.mutex(queue(long))
		k.b.waits(waiter, 1)
		k.a.waits(second, 2)
		try := waiter
		try.Queue = false
		k.b.refused(try)
		k.b.waits(waiter, 1)
	})
}
