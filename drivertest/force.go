package drivertest

import (
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
)

func testForce(s *suite) {
	s.test("TakesTheNameInOneStep", func(k *kit) {
		old, next := k.mutex(), k.mutex(force)
		first := k.a.gets(old)
		g := k.b.gets(next)
		if g.Fence <= first.Fence {
			k.Errorf("fences %d, then %d; want them to rise", first.Fence, g.Fence)
		}
		k.a.heldBy(g.Fence)
		k.b.keeps(next)
	})

	s.test("NamesTheNewHolderToTheOldOne", func(k *kit) {
		who := basictest.FullOwner()
		old := k.mutex()
		k.a.gets(old)
		k.b.gets(k.mutex(force, owner(who)))
		k.brokenBy(k.a.renew(old, long), who)
	})

	s.test("TheOldHolderCanTouchNothing", func(k *kit) {
		old, next := k.mutex(), k.mutex(force)
		k.a.gets(old)
		g := k.b.gets(next)
		k.a.lost(old)
		k.a.cannotRelease(old)
		k.b.heldBy(g.Fence)
	})

	s.test("BreaksEveryReaderAndPermit", func(k *kit) {
		reader, permit := k.reader(), k.permits(1, 2)
		k.a.gets(permit)
		k.b.gets(reader)
		g := k.a.gets(k.mutex(force))
		k.a.heldBy(g.Fence)
		k.a.lost(permit)
		k.b.lost(reader)
	})

	s.test("ByAReaderBreaksAWriter", func(k *kit) {
		writer := k.mutex()
		k.a.gets(writer)
		g := k.b.gets(k.reader(force))
		k.b.heldBy(g.Fence)
		k.a.lost(writer)
		k.a.gets(k.reader())
	})

	s.test("ByAReaderLetsTheReadersAtTheHeadInBesideIt", func(k *kit) {
		k.a.gets(k.mutex())
		one, two := k.reader(queue(long)), k.mutex(queue(long))
		k.a.waits(one, 1)
		k.b.waits(two, 2)
		k.b.gets(k.reader(force))
		k.a.seesHoldersWaiters(2, 1)
		k.a.gets(one)
		k.b.waits(two, 1)
	})

	s.test("PassesAllWaitersAndLeavesThemTheirPlaces", func(k *kit) {
		k.a.gets(k.mutex())
		waiters := k.line(2)
		taker := k.mutex(force)
		k.b.gets(taker)
		k.a.seesHoldersWaiters(1, 2) // a repeat of a claim always has a place
		k.b.waits(waiters[1], 2)
		k.a.waits(waiters[0], 1)
		k.b.releases(taker)
		k.a.gets(waiters[0])
	})

	s.test("ByAWaiterTakesItOutOfTheQueue", func(k *kit) {
		k.a.gets(k.mutex())
		waiters := k.line(2)
		taker := waiters[1]
		taker.Force = true
		g := k.b.gets(taker)
		k.a.heldBy(g.Fence)
		k.a.seesHoldersWaiters(1, 1)
		k.a.waits(waiters[0], 1)
	})

	s.test("RepeatedAfterALostReplyAnswersWithTheSameGrant", func(k *kit) {
		k.a.gets(k.mutex())
		taker := k.mutex(force)
		first := k.b.gets(taker)
		if again := k.b.gets(taker); again.Fence != first.Fence {
			k.Errorf("the repeat got the fence %d, the first %d", again.Fence, first.Fence)
		}
		k.b.keeps(taker)
	})

	s.test("OfAFreeNameIsAnOrdinaryGrant", func(k *kit) {
		c := k.mutex(force)
		k.a.gets(c)
		k.b.refused(k.mutex())
		k.a.releases(c)
		k.b.gets(k.mutex())
	})

	s.test("TakesANameThatIsKept", func(k *kit) {
		c := k.mutex()
		k.a.gets(c)
		k.a.releasesEarly(c, long)
		g := k.b.gets(k.mutex(force))
		k.b.heldBy(g.Fence)
	})

	if s.breaks {
		s.test("TakesANameThatIsClosed", func(k *kit) {
			g := k.a.gets(k.mutex())
			k.b.mustBreak(g.Fence, long, driver.Owner{})
			k.b.refused(k.mutex())
			taker := k.mutex(force)
			k.b.gets(taker)
			if e := k.a.seesHoldersWaiters(1, 0); e.ClosedFor != 0 {
				k.Errorf("closed for %v, and it was granted", e.ClosedFor)
			}
			k.b.releases(taker)
			k.a.gets(k.mutex())
		})
	}
}
