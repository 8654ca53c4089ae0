package drivertest

import (
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
)

func testForce(s *suite) {
	s.test("TakesTheNameInOneStep", func(k *kit) {
		old, next := k.mutex(), k.mutex(force)
		first := k.a.wantGranted(old)
		g := k.b.wantGranted(next)
		if g.Fence <= first.Fence {
			k.Errorf("fences %d, then %d; want them to rise", first.Fence, g.Fence)
		}
		k.a.wantFences(g.Fence)
		k.b.mustRenew(next)
	})

	s.test("NamesTheNewHolderToTheOldOne", func(k *kit) {
		who := basictest.FullOwner()
		old := k.mutex()
		k.a.wantGranted(old)
		k.b.wantGranted(k.mutex(force, owner(who)))
		k.wantBrokenBy(k.a.renew(old, long), who)
	})

	s.test("TheOldHolderCanTouchNothing", func(k *kit) {
		old, next := k.mutex(), k.mutex(force)
		k.a.wantGranted(old)
		g := k.b.wantGranted(next)
		k.a.wantLost(old)
		k.a.wantNothingToRelease(old)
		k.b.wantFences(g.Fence)
	})

	s.test("BreaksEveryReaderAndPermit", func(k *kit) {
		reader, permit := k.reader(), k.permits(1, 2)
		k.a.wantGranted(permit)
		k.b.wantGranted(reader)
		g := k.a.wantGranted(k.mutex(force))
		k.a.wantFences(g.Fence)
		k.a.wantLost(permit)
		k.b.wantLost(reader)
	})

	s.test("ByAReaderBreaksAWriter", func(k *kit) {
		writer := k.mutex()
		k.a.wantGranted(writer)
		g := k.b.wantGranted(k.reader(force))
		k.b.wantFences(g.Fence)
		k.a.wantLost(writer)
		k.a.wantGranted(k.reader())
	})

	s.test("ByAReaderLetsTheReadersAtTheHeadInBesideIt", func(k *kit) {
		k.a.wantGranted(k.mutex())
		one, two := k.reader(queue(long)), k.mutex(queue(long))
		k.a.wantPlace(one, 1)
		k.b.wantPlace(two, 2)
		k.b.wantGranted(k.reader(force))
		k.a.wantHoldersWaiters(2, 1)
		k.a.wantGranted(one)
		k.b.wantPlace(two, 1)
	})

	s.test("PassesAllWaitersAndLeavesThemTheirPlaces", func(k *kit) {
		k.a.wantGranted(k.mutex())
		waiters := k.queueMutexes(2)
		forced := k.mutex(force)
		k.b.wantGranted(forced)
		k.a.wantHoldersWaiters(1, 2) // checked first, because repeated claims rejoin the queue
		k.b.wantPlace(waiters[1], 2)
		k.a.wantPlace(waiters[0], 1)
		k.b.mustRelease(forced)
		k.a.wantGranted(waiters[0])
	})

	s.test("ByAWaiterTakesItOutOfTheQueue", func(k *kit) {
		k.a.wantGranted(k.mutex())
		waiters := k.queueMutexes(2)
		forced := waiters[1]
		forced.Force = true
		g := k.b.wantGranted(forced)
		k.a.wantFences(g.Fence)
		k.a.wantHoldersWaiters(1, 1)
		k.a.wantPlace(waiters[0], 1)
	})

	s.test("RepeatedAfterALostReplyAnswersWithTheSameGrant", func(k *kit) {
		k.a.wantGranted(k.mutex())
		forced := k.mutex(force)
		first := k.b.wantGranted(forced)
		if again := k.b.wantGranted(forced); again.Fence != first.Fence {
			k.Errorf("the repeat got the fence %d, the first %d", again.Fence, first.Fence)
		}
		k.b.mustRenew(forced)
	})

	s.test("OfAFreeNameIsAnOrdinaryGrant", func(k *kit) {
		c := k.mutex(force)
		k.a.wantGranted(c)
		k.b.wantHeld(k.mutex())
		k.a.mustRelease(c)
		k.b.wantGranted(k.mutex())
	})

	s.test("TakesANameInItsMinimumHold", func(k *kit) {
		c := k.mutex()
		k.a.wantGranted(c)
		k.a.releaseWithMinHold(c, long)
		g := k.b.wantGranted(k.mutex(force))
		k.b.wantFences(g.Fence)
	})

	if s.canBreak {
		s.test("TakesANameThatIsClosed", func(k *kit) {
			g := k.a.wantGranted(k.mutex())
			k.b.mustBreak(g.Fence, long, driver.Owner{})
			k.b.wantHeld(k.mutex())
			forced := k.mutex(force)
			k.b.wantGranted(forced)
			if e := k.a.wantHoldersWaiters(1, 0); e.ClosedFor != 0 {
				k.Errorf("closed for %v after a forced grant; want 0", e.ClosedFor)
			}
			k.b.mustRelease(forced)
			k.a.wantGranted(k.mutex())
		})
	}
}
