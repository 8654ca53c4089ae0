package drivertest

// testPlace tests how long a place in the queue lasts.
func testPlace(s *suite) {
	s.test("EachRepeatKeepsItForAnotherQueueTTL", func(k *kit) {
		k.a.wantGranted(k.mutex())
		first, second := k.mutex(queue(2*k.unit)), k.mutex(queue(long))
		k.a.wantPlace(first, 1)
		k.b.wantPlace(second, 2)
		for range 3 {
			k.advance(k.unit)
			k.a.wantPlace(first, 1)
		}
		k.advance(k.unit + k.unit/4)
		k.b.wantPlace(second, 2)
		k.advancePast(k.unit)
		k.b.wantPlace(second, 1)
	})

	s.test("AnExpiredPlaceIsLostAndTheRepeatJoinsAtTheEnd", func(k *kit) {
		k.a.wantGranted(k.mutex())
		first, second := k.mutex(queue(k.unit)), k.mutex(queue(long))
		k.a.wantPlace(first, 1)
		k.b.wantPlace(second, 2)
		k.advancePast(k.unit)
		k.a.wantPlace(first, 2)
		k.b.wantPlace(second, 1)
	})

	s.testExact("IsLostAtTheVeryInstant", func(k *kit) {
		k.a.wantGranted(k.mutex())
		first, second := k.mutex(queue(k.unit)), k.mutex(queue(long))
		k.a.wantPlace(first, 1)
		k.b.wantPlace(second, 2)
		k.advancePast(k.unit - clockStep)
		k.b.wantPlace(second, 2)
		k.advancePast(clockStep)
		k.b.wantPlace(second, 1)
	})

	s.test("AnExpiredPlaceBlocksATryNoLonger", func(k *kit) {
		k.a.wantGranted(k.permits(1, 3))
		k.b.wantPlace(k.permits(3, 3, queue(k.unit)), 1)
		k.a.wantHeld(k.permits(1, 3))
		k.advancePast(k.unit)
		k.a.wantGranted(k.permits(1, 3))
	})

	s.test("ADeadHeadLetsTheNextIn", func(k *kit) {
		k.a.wantGranted(k.permits(1, 3))
		dead, small := k.permits(3, 3, queue(k.unit)), k.permits(1, 3, queue(long))
		k.b.wantPlace(dead, 1)
		k.a.wantPlace(small, 2)
		k.advancePast(k.unit)
		k.a.wantGranted(small)
		k.b.wantNothingToRelease(dead)
	})

	s.test("AnExpiredPlaceCannotBeReleased", func(k *kit) {
		k.a.wantGranted(k.mutex())
		waiter := k.mutex(queue(k.unit))
		k.b.wantPlace(waiter, 1)
		k.advancePast(k.unit)
		k.b.wantNothingToRelease(waiter)
		k.a.wantHoldersWaiters(1, 0)
	})

	s.test("ADeadWaiterCostsTheOthersNoMoreThanItsQueueTTL", func(k *kit) {
		holder, dead, alive := k.mutex(), k.mutex(queue(k.unit)), k.mutex(queue(long))
		k.a.wantGranted(holder)
		k.a.wantPlace(dead, 1)
		k.b.wantPlace(alive, 2)
		k.a.mustRelease(holder) // grants to the dead waiter, which never claims again
		k.b.wantPlace(alive, 1)
		k.advancePast(k.unit)
		k.b.wantGranted(alive)
	})

	s.test("ARepeatWithATryDoesNotLoseIt", func(k *kit) {
		// A client that ends its wait repeats the claim without Queue, and then releases
		// it. The repeat must not lose the place or the grant.
		k.a.wantGranted(k.mutex())
		waiter, second := k.mutex(queue(long)), k.mutex(queue(long))
		k.b.wantPlace(waiter, 1)
		k.a.wantPlace(second, 2)
		try := waiter
		try.Queue = false
		k.b.wantHeld(try)
		k.b.wantPlace(waiter, 1)
	})
}
