package drivertest

import "github.com/pawl-go/pawl/driver"

func testSemaphore(s *suite) {
	s.test("AdmitsNHoldersAndRefusesTheNext", func(k *kit) {
		var held []driver.Claim
		for range 3 {
			c := k.permits(1, 3)
			k.a.wantGranted(c)
			held = append(held, c)
		}
		refused := k.b.wantHeld(k.permits(1, 3))
		if refused.Holders != 3 {
			k.Errorf("%d holders in the way, want 3", refused.Holders)
		}
		k.a.mustRelease(held[1])
		k.b.wantGranted(k.permits(1, 3))
		k.b.wantHeld(k.permits(1, 3))
	})

	s.test("WeightsAreAddedUp", func(k *kit) {
		k.a.wantGranted(k.permits(2, 5))
		k.a.wantGranted(k.permits(2, 5))
		k.b.wantHeld(k.permits(2, 5))
		k.b.wantGranted(k.permits(1, 5))
		k.b.wantHeld(k.permits(1, 5))
	})

	s.test("EachCallerIsHeldToItsOwnLimit", func(k *kit) {
		// A semaphore may be resized while old and new instances of a program run.
		for range 3 {
			k.a.wantGranted(k.permits(1, 3))
		}
		k.b.wantHeld(k.permits(1, 2))
		k.b.wantHeld(k.permits(1, 3))
		k.b.wantGranted(k.permits(1, 4))
		k.b.wantHeld(k.permits(1, 4))
		k.b.wantGranted(k.permits(2, 6))
	})

	s.test("AWaiterIsHeldToItsOwnLimit", func(k *kit) {
		one, two := k.permits(1, 2), k.permits(1, 2)
		k.a.wantGranted(one)
		k.a.wantGranted(two)
		shrunk := k.permits(1, 1, queue(long))
		k.b.wantPlace(shrunk, 1)
		k.a.mustRelease(one)
		k.b.wantPlace(shrunk, 1)
		k.a.mustRelease(two)
		k.b.wantGranted(shrunk)
	})

	s.test("ADeadHoldersPermitIsFreeAfterItsExpiry", func(k *kit) {
		dead := k.permits(1, 2, ttl(k.unit))
		k.a.wantGranted(dead)
		k.a.wantGranted(k.permits(1, 2))
		k.b.wantHeld(k.permits(1, 2))
		k.advancePast(k.unit)
		k.b.wantGranted(k.permits(1, 2))
		k.b.wantHeld(k.permits(1, 2))
		k.a.wantNothingToRelease(dead)
	})

	s.test("AStaleHandleCannotTouchALaterPermit", func(k *kit) {
		old := k.permits(1, 1)
		k.a.wantGranted(old)
		k.a.mustRelease(old)
		next := k.permits(1, 1)
		g := k.a.wantGranted(next)
		k.a.wantNothingToRelease(old)
		k.a.wantLost(old)
		k.b.wantFences(g.Fence)
	})

	s.test("HoldersStandInTheOrderOfTheirGrants", func(k *kit) {
		var want []uint64
		first := k.permits(1, 6)
		k.a.wantGranted(first)
		for i := range 4 {
			want = append(want, []*client{k.a, k.b}[i%2].wantGranted(k.permits(1, 6)).Fence)
		}
		k.a.mustRelease(first)
		want = append(want, k.a.wantGranted(k.permits(1, 6)).Fence)
		k.b.wantFences(want...)
	})

	s.test("TheLargestWeightsDoNotOverflow", func(k *kit) {
		const most = driver.Unlimited - 1
		k.a.wantGranted(k.permits(most, most))
		k.b.wantHeld(k.permits(most, most))
		k.b.wantHeld(k.permits(1, most))
		k.b.wantGranted(k.reader()) // its weight 1 fills the limit exactly
		k.b.wantHeld(k.reader())
	})

	s.test("ALimitOfOneIsNoMutex", func(k *kit) {
		k.a.wantGranted(k.permits(1, 1))
		k.b.wantHeld(k.permits(1, 1))
		k.b.wantHeld(k.mutex())
		k.b.wantGranted(k.reader()) // its own limit counts, which is Unlimited
	})
}
