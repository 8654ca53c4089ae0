package drivertest

import "github.com/pawl-go/pawl/driver"

func testSemaphore(s *suite) {
	s.test("NAtOnceAndTheNextIsRefused", func(k *kit) {
		var held []driver.Claim
		for range 3 {
			c := k.permits(1, 3)
			k.a.gets(c)
			held = append(held, c)
		}
		refused := k.b.refused(k.permits(1, 3))
		if refused.Holders != 3 {
			k.Errorf("%d holders in the way, want 3", refused.Holders)
		}
		k.a.releases(held[1])
		k.b.gets(k.permits(1, 3))
		k.b.refused(k.permits(1, 3))
	})

	s.test("WeightsAreAddedUp", func(k *kit) {
		k.a.gets(k.permits(2, 5))
		k.a.gets(k.permits(2, 5))
		k.b.refused(k.permits(2, 5))
		k.b.gets(k.permits(1, 5))
		k.b.refused(k.permits(1, 5))
	})

	s.test("EachCallerIsHeldToItsOwnLimit", func(k *kit) {
		// A semaphore is resized while old and new instances of a program run side by
		// side.
		for range 3 {
			k.a.gets(k.permits(1, 3))
		}
		k.b.refused(k.permits(1, 2))
		k.b.refused(k.permits(1, 3))
		k.b.gets(k.permits(1, 4))
		k.b.refused(k.permits(1, 4))
		k.b.gets(k.permits(2, 6))
	})

	s.test("AWaiterIsHeldToItsOwnLimit", func(k *kit) {
		one, two := k.permits(1, 2), k.permits(1, 2)
		k.a.gets(one)
		k.a.gets(two)
		shrunk := k.permits(1, 1, queue(long))
		k.b.waits(shrunk, 1)
		k.a.releases(one)
		k.b.waits(shrunk, 1)
		k.a.releases(two)
		k.b.gets(shrunk)
	})

	s.test("ADeadHoldersPermitIsFreeAfterItsExpiry", func(k *kit) {
		dead := k.permits(1, 2, ttl(k.u))
		k.a.gets(dead)
		k.a.gets(k.permits(1, 2))
		k.b.refused(k.permits(1, 2))
		k.past(k.u)
		k.b.gets(k.permits(1, 2))
		k.b.refused(k.permits(1, 2))
		k.a.cannotRelease(dead)
	})

	s.test("AStaleHandleCannotTouchALaterPermit", func(k *kit) {
		old := k.permits(1, 1)
		k.a.gets(old)
		k.a.releases(old)
		next := k.permits(1, 1)
		g := k.a.gets(next)
		k.a.cannotRelease(old)
		k.a.lost(old)
		k.b.heldBy(g.Fence)
	})

	s.test("HoldersStandInTheOrderOfTheirGrants", func(k *kit) {
		var want []uint64
		first := k.permits(1, 6)
		k.a.gets(first)
		for i := range 4 {
			want = append(want, []*client{k.a, k.b}[i%2].gets(k.permits(1, 6)).Fence)
		}
		k.a.releases(first)
		want = append(want, k.a.gets(k.permits(1, 6)).Fence)
		k.b.heldBy(want...)
	})

	s.test("TheLargestWeightsDoNotOverflow", func(k *kit) {
		const most = driver.Unlimited - 1
		k.a.gets(k.permits(most, most))
		k.b.refused(k.permits(most, most))
		k.b.refused(k.permits(1, most))
		k.b.gets(k.reader()) // one more fills the limit exactly
		k.b.refused(k.reader())
	})

	s.test("ALimitOfOneIsNoMutex", func(k *kit) {
		k.a.gets(k.permits(1, 1))
		k.b.refused(k.permits(1, 1))
		k.b.refused(k.mutex())
		k.b.gets(k.reader()) // it is held to its own limit, which is all
	})
}
