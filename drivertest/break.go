package drivertest

import (
	"errors"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
)

func testBreaking(s *suite) {
	op := basictest.FullOwner()

	s.test("TakesTheLeaseAndNamesTheBreakerToItsHolder", func(k *kit) {
		c := k.mutex()
		g := k.a.wantGranted(c)
		k.b.mustBreak(g.Fence, 0, op)
		k.b.wantHoldersWaiters(0, 0)
		k.wantBrokenBy(k.a.renew(c, long), op)
		k.wantBrokenBy(k.a.renew(c, long), op) // each renewal has the same answer
	})

	s.test("WithoutADelayLetsTheNextInAtOnce", func(k *kit) {
		g := k.a.wantGranted(k.mutex())
		waiter := k.mutex(queue(long))
		k.b.wantPlace(waiter, 1)
		k.a.mustBreak(g.Fence, 0, op)
		k.a.wantHoldersWaiters(1, 0)
		k.b.wantGranted(waiter)
	})

	s.test("KeepsTheNameClosedForTheDelay", func(k *kit) {
		c := k.mutex()
		g := k.a.wantGranted(c)
		k.b.mustBreak(g.Fence, 2*k.unit, op)
		k.advance(k.unit)
		held := k.b.wantHeld(k.mutex())
		if held.ClosedFor <= 0 || held.ClosedFor > k.unit+k.unit/2 || held.Holders != 0 {
			k.Errorf("%+v; want no holders, and closed for another %v", held, k.unit)
		}
		if held.RetryAfter < held.ClosedFor {
			k.Errorf("RetryAfter = %v; want when the name opens, in %v", held.RetryAfter, held.ClosedFor)
		}
		if e := k.a.wantHoldersWaiters(0, 0); e.ClosedFor <= 0 {
			k.Errorf("%+v; want it closed", e)
		}
		k.advancePast(k.unit)
		k.b.wantGranted(k.mutex())
	})

	s.testExact("OpensAtTheVeryInstant", func(k *kit) {
		g := k.a.wantGranted(k.mutex())
		k.b.mustBreak(g.Fence, k.unit, op)
		k.advancePast(k.unit - clockStep)
		k.b.wantHeld(k.mutex())
		k.advancePast(clockStep)
		k.b.wantGranted(k.mutex())
	})

	s.test("TellsTheHolderHowLongTheNameStaysClosed", func(k *kit) {
		c := k.mutex()
		g := k.a.wantGranted(c)
		k.b.mustBreak(g.Fence, long, op)
		broken := k.wantBrokenBy(k.a.renew(c, long), op)
		most := long
		if k.suite.Clock == nil {
			most += k.unit / 4 // the step may take effect later, and closes the name from then on
		}
		if broken.ClosedFor <= long/2 || broken.ClosedFor > most {
			k.Errorf("ClosedFor = %v, want %v", broken.ClosedFor, long)
		}
	})

	s.test("TheQueueIsServedInOrderAfterTheDelay", func(k *kit) {
		g := k.a.wantGranted(k.mutex())
		first, second := k.mutex(queue(8*k.unit)), k.mutex(queue(8*k.unit))
		k.a.wantPlace(first, 1)
		k.b.wantPlace(second, 2)
		k.b.mustBreak(g.Fence, k.unit, op)
		k.a.wantHoldersWaiters(0, 2)
		k.a.wantPlace(first, 1)
		k.advancePast(k.unit)
		k.b.wantPlace(second, 1)
		k.a.wantGranted(first)
	})

	s.test("OfAFenceThatNoHolderHasChangesNothing", func(k *kit) {
		c := k.mutex()
		k.wantNoSuchLease(k.a.breakLease(1, long, op)) // an unknown name
		g := k.a.wantGranted(c)
		k.wantNoSuchLease(k.b.breakLease(g.Fence-1, long, op))
		k.wantNoSuchLease(k.b.breakLease(g.Fence+uint64(g.Fences), long, op))
		k.wantNoSuchLease(k.b.breakLease(0, long, op))
		k.b.wantFences(g.Fence)
		k.a.mustRenew(c)
		k.a.mustRelease(c)
		k.wantNoSuchLease(k.b.breakLease(g.Fence, long, op)) // released
		k.b.wantGranted(k.mutex())                           // the name is not closed
	})

	s.test("OfAnOldFenceLeavesTheNewHolder", func(k *kit) {
		old := k.mutex()
		g := k.a.wantGranted(old)
		k.a.mustRelease(old)
		next := k.mutex()
		k.b.wantGranted(next)
		k.wantNoSuchLease(k.a.breakLease(g.Fence, 0, op))
		k.b.mustRenew(next)
	})

	s.test("MatchesEveryFenceOfARange", func(k *kit) {
		for _, fenceOf := range []func(driver.Grant) uint64{
			func(g driver.Grant) uint64 { return g.Fence },
			func(g driver.Grant) uint64 { return g.Fence + uint64(g.Fences)/2 },
			func(g driver.Grant) uint64 { return g.Fence + uint64(g.Fences) - 1 },
		} {
			c := k.mutex(fences(10))
			g := k.a.wantGranted(c)
			k.wantNoSuchLease(k.b.breakLease(g.Fence+uint64(g.Fences), 0, op))
			k.b.mustBreak(fenceOf(g), 0, op)
			k.a.wantLost(c)
		}
	})

	s.test("OfOneHolderLeavesTheOthers", func(k *kit) {
		one, two := k.permits(1, 2), k.permits(1, 2)
		f1, f2 := k.a.wantGranted(one).Fence, k.a.wantGranted(two).Fence
		k.b.mustBreak(f1, 0, op)
		k.b.wantFences(f2)
		k.a.wantLost(one)
		k.a.mustRenew(two)
	})

	s.test("ClosesTheNameForNewClaimsAndNotForOtherHolders", func(k *kit) {
		one, two := k.permits(1, 3), k.permits(1, 3)
		k.a.wantGranted(two)
		k.b.mustBreak(k.a.wantGranted(one).Fence, long, op)
		k.a.mustRenew(two)
		k.b.wantHeld(k.permits(1, 3))
	})

	s.test("ALaterBreakNeverOpensTheNameEarlier", func(k *kit) {
		one, two := k.permits(1, 2), k.permits(1, 2)
		f1, f2 := k.a.wantGranted(one).Fence, k.a.wantGranted(two).Fence
		k.b.mustBreak(f1, long, op)
		k.b.mustBreak(f2, k.unit, op)
		if e := k.b.wantHoldersWaiters(0, 0); e.ClosedFor <= long/2 {
			k.Errorf("closed for %v, want %v", e.ClosedFor, long)
		}
	})

	s.test("TheBrokenHoldersLateReleaseEndsNoOtherLease", func(k *kit) {
		old, next := k.mutex(), k.mutex()
		g := k.a.wantGranted(old)
		k.b.mustBreak(g.Fence, 0, op)
		now := k.b.wantGranted(next)
		k.a.wantNothingToRelease(old)
		k.b.wantFences(now.Fence)
	})

	s.test("TheBrokenHoldersLateReleaseDoesNotOpenTheName", func(k *kit) {
		old := k.mutex()
		g := k.a.wantGranted(old)
		k.b.mustBreak(g.Fence, long, op)
		k.a.wantNothingToRelease(old)
		k.b.wantHeld(k.mutex())
	})

	s.test("EndsAMinimumHold", func(k *kit) {
		c := k.mutex()
		g := k.a.wantGranted(c)
		k.a.releaseWithMinHold(c, long)
		k.b.mustBreak(g.Fence, 0, op)
		k.b.wantGranted(k.mutex())
	})
}

// wantNoSuchLease requires that a break found no lease.
func (k *kit) wantNoSuchLease(err error) {
	k.Helper()
	if !errors.Is(err, driver.ErrNoSuchLease) {
		k.Fatalf("Break: %v; want ErrNoSuchLease", err)
	}
}
