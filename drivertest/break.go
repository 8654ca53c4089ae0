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
		g := k.a.gets(c)
		k.b.mustBreak(g.Fence, 0, op)
		k.b.seesHoldersWaiters(0, 0)
		k.brokenBy(k.a.renew(c, long), op)
		k.brokenBy(k.a.renew(c, long), op) // each time that it asks
	})

	s.test("WithoutADelayLetsTheNextInAtOnce", func(k *kit) {
		g := k.a.gets(k.mutex())
		waiter := k.mutex(queue(long))
		k.b.waits(waiter, 1)
		k.a.mustBreak(g.Fence, 0, op)
		k.a.seesHoldersWaiters(1, 0)
		k.b.gets(waiter)
	})

	s.test("KeepsTheNameClosedForTheDelay", func(k *kit) {
		c := k.mutex()
		g := k.a.gets(c)
		k.b.mustBreak(g.Fence, 2*k.u, op)
		k.pass(k.u)
		held := k.b.refused(k.mutex())
		if held.ClosedFor <= 0 || held.ClosedFor > k.u+k.u/2 || held.Holders != 0 {
			k.Errorf("%+v; want no holders, and closed for another %v", held, k.u)
		}
		if held.RetryAfter < held.ClosedFor {
			k.Errorf("RetryAfter = %v; want when the name opens, in %v", held.RetryAfter, held.ClosedFor)
		}
		if e := k.a.seesHoldersWaiters(0, 0); e.ClosedFor <= 0 {
			k.Errorf("%+v; want it closed", e)
		}
		k.past(k.u)
		k.b.gets(k.mutex())
	})

	s.exact("OpensAtTheVeryInstant", func(k *kit) {
		g := k.a.gets(k.mutex())
		k.b.mustBreak(g.Fence, k.u, op)
		k.past(k.u - instant)
		k.b.refused(k.mutex())
		k.past(instant)
		k.b.gets(k.mutex())
	})

	s.test("TellsTheHolderHowLongTheNameStaysClosed", func(k *kit) {
		c := k.mutex()
		g := k.a.gets(c)
		k.b.mustBreak(g.Fence, long, op)
		broken := k.brokenBy(k.a.renew(c, long), op)
		most := long
		if k.s.Clock == nil {
			most += k.u / 4 // the name stays closed longer if the step may have taken effect later
		}
		if broken.ClosedFor <= long/2 || broken.ClosedFor > most {
			k.Errorf("ClosedFor = %v, want %v", broken.ClosedFor, long)
		}
	})

	s.test("AfterTheDelayTheQueueIsServedInOrder", func(k *kit) {
		g := k.a.gets(k.mutex())
		first, second := k.mutex(queue(8*k.u)), k.mutex(queue(8*k.u))
		k.a.waits(first, 1)
		k.b.waits(second, 2)
		k.b.mustBreak(g.Fence, k.u, op)
		k.a.seesHoldersWaiters(0, 2)
		k.a.waits(first, 1)
		k.past(k.u)
		k.b.waits(second, 1)
		k.a.gets(first)
	})

	s.test("OfAFenceThatNoHolderHasChangesNothing", func(k *kit) {
		c := k.mutex()
		k.notThere(k.a.breaks(1, long, op)) // an unknown name
		g := k.a.gets(c)
		k.notThere(k.b.breaks(g.Fence-1, long, op))
		k.notThere(k.b.breaks(g.Fence+uint64(g.Fences), long, op))
		k.notThere(k.b.breaks(0, long, op))
		k.b.heldBy(g.Fence)
		k.a.keeps(c)
		k.a.releases(c)
		k.notThere(k.b.breaks(g.Fence, long, op)) // released
		k.b.gets(k.mutex())                       // and not closed
	})

	s.test("OfAnOldFenceLeavesTheNewHolder", func(k *kit) {
		old := k.mutex()
		g := k.a.gets(old)
		k.a.releases(old)
		next := k.mutex()
		k.b.gets(next)
		k.notThere(k.a.breaks(g.Fence, 0, op))
		k.b.keeps(next)
	})

	s.test("MatchesEveryFenceOfARun", func(k *kit) {
		for _, pick := range []func(driver.Grant) uint64{
			func(g driver.Grant) uint64 { return g.Fence },
			func(g driver.Grant) uint64 { return g.Fence + uint64(g.Fences)/2 },
			func(g driver.Grant) uint64 { return g.Fence + uint64(g.Fences) - 1 },
		} {
			c := k.mutex(fences(10))
			g := k.a.gets(c)
			k.notThere(k.b.breaks(g.Fence+uint64(g.Fences), 0, op))
			k.b.mustBreak(pick(g), 0, op)
			k.a.lost(c)
		}
	})

	s.test("OfOneHolderLeavesTheOthers", func(k *kit) {
		one, two := k.permits(1, 2), k.permits(1, 2)
		f1, f2 := k.a.gets(one).Fence, k.a.gets(two).Fence
		k.b.mustBreak(f1, 0, op)
		k.b.heldBy(f2)
		k.a.lost(one)
		k.a.keeps(two)
	})

	s.test("ClosesTheNameForOthersAndNotForThoseWhoHoldIt", func(k *kit) {
		one, two := k.permits(1, 3), k.permits(1, 3)
		k.a.gets(two)
		k.b.mustBreak(k.a.gets(one).Fence, long, op)
		k.a.keeps(two)
		k.b.refused(k.permits(1, 3))
	})

	s.test("ALaterBreakNeverOpensTheNameEarlier", func(k *kit) {
		one, two := k.permits(1, 2), k.permits(1, 2)
		f1, f2 := k.a.gets(one).Fence, k.a.gets(two).Fence
		k.b.mustBreak(f1, long, op)
		k.b.mustBreak(f2, k.u, op)
		if e := k.b.seesHoldersWaiters(0, 0); e.ClosedFor <= long/2 {
			k.Errorf("closed for %v, want %v", e.ClosedFor, long)
		}
	})

	s.test("TheBrokenHoldersLateReleaseEndsNoOtherLease", func(k *kit) {
		old, next := k.mutex(), k.mutex()
		g := k.a.gets(old)
		k.b.mustBreak(g.Fence, 0, op)
		now := k.b.gets(next)
		k.a.cannotRelease(old)
		k.b.heldBy(now.Fence)
	})

	s.test("TheBrokenHoldersLateReleaseDoesNotOpenTheName", func(k *kit) {
		old := k.mutex()
		g := k.a.gets(old)
		k.b.mustBreak(g.Fence, long, op)
		k.a.cannotRelease(old)
		k.b.refused(k.mutex())
	})

	s.test("TakesWhatIsKept", func(k *kit) {
		c := k.mutex()
		g := k.a.gets(c)
		k.a.releasesEarly(c, long)
		k.b.mustBreak(g.Fence, 0, op)
		k.b.gets(k.mutex())
	})
}

// notThere wants a break to have found no lease.
func (k *kit) notThere(err error) {
	k.Helper()
	if !errors.Is(err, driver.ErrNoSuchLease) {
		k.Fatalf("Break: %v; want ErrNoSuchLease", err)
	}
}
