package locktable_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

func TestAcquire(t *testing.T) {
	each(t, map[string]func(l *lab){
		"FreeNameIsGranted": func(l *lab) {
			g := l.granted(mutex("a"))
			equal(l.t, "fence", g.Fence, uint64(l.now))
			equal(l.t, "run", g.Fences, 1)
			equal(l.t, "TTL", g.TTL, ttl)
			l.state("a |")
			l.said("")
		},
		"MutexExcludesEveryOtherKind": func(l *lab) {
			l.granted(mutex("a"))
			l.refused(try(mutex("b")))
			l.refused(try(reader("c")))
			l.refused(try(permits("d", 1, 100)))
			l.state("a |")
		},
		"ReadersShareAndExcludeTheWriter": func(l *lab) {
			l.granted(reader("a"))
			l.granted(reader("b"))
			l.refused(try(mutex("c")))
			l.state("a b |")
		},
		"WeightsAddUpToTheLimit": func(l *lab) {
			l.granted(permits("a", 2, 4))
			l.refused(try(permits("b", 3, 4)))
			l.granted(permits("c", 2, 4))
			l.refused(try(permits("d", 1, 4)))
			l.state("a c |")
		},
		"SemaphoreIsResizedWhileInUse": func(l *lab) {
			l.granted(permits("a", 1, 2))
			l.granted(permits("b", 1, 2))
			l.granted(permits("c", 1, 3)) // the new deployment sees three
			l.refused(try(permits("d", 1, 2)))
			l.refused(try(permits("e", 1, 1)))
			l.ok(l.release("a", 0))
			l.refused(try(permits("f", 1, 2))) // b and c are two
			l.granted(permits("g", 1, 3))
			l.state("b c g |")
		},
		"RefusalSaysWhoHoldsAndForHowLong": func(l *lab) {
			g := l.granted(mutex("a"))
			l.sleep(10 * sec)
			held := l.refused(try(mutex("b")))
			equal(l.t, "name", held.Name, "job")
			equal(l.t, "number of holders", held.Holders, 1)
			h := held.Holder
			equal(l.t, "holder", h.Owner.String(), "a")
			equal(l.t, "fence", h.Fence, g.Fence)
			equal(l.t, "last fence", held.Fence, g.Fence)
			equal(l.t, "expires in", h.ExpiresIn, 20*sec)
			equal(l.t, "since", h.Since, start.Time())
			equal(l.t, "retry", held.RetryAfter, 20*sec)
			equal(l.t, "position", held.Position, 0)
			equal(l.t, "changed", l.e.Changed, false)
		},
		"AskedAgainIsTheSameGrantForAFullTTL": func(l *lab) {
			g := l.granted(mutex("a"))
			l.sleep(29 * sec)
			equal(l.t, "second grant", l.granted(mutex("a")), g)
			l.sleep(29 * sec)
			equal(l.t, "third grant", l.granted(mutex("a")), g)
			l.state("a |")
		},
		"AskedAgainWithAShorterTTLShortensNothing": func(l *lab) {
			l.granted(mutex("a"))
			l.granted(with(mutex("a"), func(c *driver.Claim) { c.TTL = sec }))
			equal(l.t, "expiry", l.e.Holders[0].Expires, l.now.Add(ttl))
		},
		"LeaseIsOverAtTheInstantOfItsExpiry": func(l *lab) {
			l.granted(mutex("a"))
			l.sleep(ttl - µs)
			equal(l.t, "retry", l.refused(try(mutex("b"))).RetryAfter, µs)
			l.sleep(µs)
			l.granted(try(mutex("b")))
			l.state("b |")
		},
		"PartsOfAMicrosecondAreRoundedUp": func(l *lab) {
			l.granted(with(mutex("a"), func(c *driver.Claim) { c.TTL = 10*ms + 1 }))
			l.sleep(10 * ms)
			l.refused(try(mutex("b")))
			l.sleep(µs)
			l.granted(try(mutex("b")))
		},
		"FenceRisesAlthoughTheClockRunsBack": func(l *lab) {
			first := l.granted(mutex("a"))
			l.ok(l.release("a", 0))
			l.sleep(-time.Hour)
			equal(l.t, "fence", l.granted(mutex("b")).Fence, first.Fence+1)
		},
		"ClockThatWasNeverSetStillFences": func(l *lab) {
			l.now = 0
			equal(l.t, "fence", l.granted(mutex("a")).Fence, 1)
			l.ok(l.release("a", 0))
			equal(l.t, "fence", l.granted(mutex("b")).Fence, 2)
		},
		"ExclusiveGrantReservesARunOfFences": func(l *lab) {
			g := l.granted(with(mutex("a"), func(c *driver.Claim) { c.Fences = 100 }))
			equal(l.t, "run", g.Fences, 100)
			l.ok(l.release("a", 0))
			equal(l.t, "next fence", l.granted(mutex("b")).Fence, g.Fence+100)
		},
		"SharedGrantReservesOneFence": func(l *lab) {
			equal(l.t, "run", l.granted(with(reader("a"), func(c *driver.Claim) { c.Fences = 100 })).Fences, 1)
			l.granted(reader("b"))
		},
	})
}

func TestQueue(t *testing.T) {
	each(t, map[string]func(l *lab){
		"ServedInTheOrderOfArrival": func(l *lab) {
			l.granted(mutex("a"))
			for i, who := range []string{"b", "c", "d"} {
				equal(l.t, "position", l.refused(mutex(who)).Position, i+1)
			}
			l.ok(l.release("a", 0))
			l.state("b | c d")
			l.said("granted b")
			l.ok(l.release("b", 0))
			l.state("c | d")
		},
		"NoReaderPassesAWaitingWriter": func(l *lab) {
			l.granted(reader("a"))
			l.refused(mutex("writer"))
			l.refused(try(reader("b")))
			l.refused(reader("c"))
			l.state("a | writer c")
		},
		"NoSmallClaimPassesALargeOne": func(l *lab) {
			l.granted(permits("a", 2, 4))
			l.refused(permits("large", 3, 4))
			l.refused(try(permits("small", 1, 4)))
		},
		"TryNeverQueuesAndNeverPasses": func(l *lab) {
			l.granted(reader("a"))
			l.refused(mutex("b"))
			l.refused(try(reader("c")))
			l.state("a | b")
		},
		"EveryoneThatFitsIsGrantedAtOnce": func(l *lab) {
			l.granted(mutex("a"))
			for _, who := range []string{"b", "c", "d"} {
				l.refused(reader(who))
			}
			l.refused(mutex("e"))
			l.refused(reader("f"))
			l.ok(l.release("a", 0))
			l.state("b c d | e f")
			l.said("granted b, granted c, granted d")
		},
		"AskingAgainKeepsThePlace": func(l *lab) {
			l.granted(with(mutex("a"), func(c *driver.Claim) { c.TTL = time.Hour }))
			l.refused(mutex("b"))
			l.refused(mutex("c"))
			for range 5 {
				l.sleep(wait - µs)
				equal(l.t, "position", l.refused(mutex("b")).Position, 1)
			}
			l.state("a | b")
		},
		"PlaceThatIsNotKeptIsLostAtItsInstant": func(l *lab) {
			l.granted(mutex("a"))
			l.refused(mutex("b"))
			l.sleep(wait - µs)
			l.refused(mutex("c"))
			l.state("a | b c")
			l.sleep(µs)
			equal(l.t, "position", l.refused(mutex("b")).Position, 2)
			l.state("a | c b")
		},
		"LeavingTheQueueLetsTheNextIn": func(l *lab) {
			l.granted(reader("a"))
			l.refused(mutex("b"))
			l.refused(reader("c"))
			l.ok(l.release("b", 0))
			l.state("a c |")
			l.said("granted c")
		},
		"DeadWriterInTheQueueLetsTheReadersInAfterQueueTTL": func(l *lab) {
			l.granted(reader("a"))
			l.refused(mutex("dead"))
			l.sleep(sec)
			equal(l.t, "retry", l.refused(reader("b")).RetryAfter, wait-sec)
			l.sleep(wait - sec)
			l.granted(reader("b"))
		},
		"GrantThatIsPassedOnLastsAsLongAsThePlaceWouldHave": func(l *lab) {
			l.granted(mutex("a"))
			l.refused(mutex("b"))
			l.sleep(sec)
			l.ok(l.release("a", 0))
			equal(l.t, "expiry", l.e.Holders[0].Expires, l.now.Add(wait-sec))
			l.ok(l.renew("b", ttl))
			equal(l.t, "expiry after renewal", l.e.Holders[0].Expires, l.now.Add(ttl))
		},
		"AskingAfterBeingPromotedIsTheGrantForAFullTTL": func(l *lab) {
			l.granted(mutex("a"))
			l.refused(with(mutex("b"), func(c *driver.Claim) { c.Fences = 7 }))
			l.ok(l.release("a", 0))
			g := l.granted(mutex("b"))
			equal(l.t, "run", g.Fences, 7)
			equal(l.t, "expiry", l.e.Holders[0].Expires, l.now.Add(ttl))
		},
		"WhoFindsAnExpiredHolderPassesTheNameOn": func(l *lab) {
			l.granted(mutex("a"))
			l.sleep(ttl - wait + sec)
			l.refused(mutex("b"))
			l.sleep(wait - sec)
			l.refused(mutex("c"))
			l.state("b | c")
			l.said("granted b")
		},
		"DeadWaiterCostsTheNextOneItsQueueTTL": func(l *lab) {
			l.granted(mutex("a"))
			l.refused(mutex("dead"))
			l.refused(mutex("b"))
			l.ok(l.release("a", 0))
			l.state("dead | b")
			l.sleep(wait - µs)
			l.refused(mutex("b"))
			l.sleep(µs)
			l.granted(mutex("b"))
		},
		"ReleaseOfAWaiterKeepsNothing": func(l *lab) {
			l.granted(mutex("a"))
			l.refused(mutex("b"))
			l.ok(l.release("b", time.Hour))
			l.state("a |")
		},
	})
}

func TestSignalsOfOneStepAreNotOverwrittenByTheNext(t *testing.T) {
	l := newLab(t)
	l.granted(mutex("a"))
	l.refused(mutex("b"))
	l.refused(mutex("c"))
	l.ok(l.release("a", 0))
	first := l.e.Signals
	l.ok(l.release("b", 0))
	equal(t, "first signal", first[0].Inbox, "b")
	equal(t, "second signal", l.e.Signals[0].Inbox, "c")
}

func TestInstantsRoundUpSoThatNothingEndsEarly(t *testing.T) {
	for d, want := range map[time.Duration]locktable.Instant{0: 0, 1: 1, µs: 1, µs + 1: 2, sec: 1e6, driver.MaxTTL: 30 * 86400 * 1e6} {
		equal(t, fmt.Sprint("instant after ", d), locktable.Instant(0).Add(d), want)
	}
	equal(t, "time until", locktable.Instant(5).Until(3), -2*µs)
	equal(t, "instant of its time", locktable.At(start.Time()), start)
}
