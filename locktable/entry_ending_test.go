package locktable_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

func TestRenew(t *testing.T) {
	each(t, map[string]func(l *lab){
		"LastsItsTTLFromNow": func(l *lab) {
			l.granted(mutex("a"))
			l.sleep(29 * sec)
			l.ok(l.renew("a", ttl))
			l.sleep(ttl - µs)
			l.refused(try(mutex("b")))
		},
		"NeverShortens": func(l *lab) {
			l.granted(mutex("a"))
			l.ok(l.renew("a", ttl))
			equal(l.t, "changed", l.e.Changed, false)
			l.ok(l.renew("a", sec))
			equal(l.t, "expiry", l.e.Holders[0].Expires, start.Add(ttl))
			equal(l.t, "TTL", l.e.Holders[0].TTL, sec)
			l.sleep(-time.Hour)
			l.ok(l.renew("a", ttl))
			equal(l.t, "expiry", l.e.Holders[0].Expires, start.Add(ttl))
		},
		"NeverCreates": func(l *lab) {
			l.notHeld(l.renew("a", ttl))
			l.state("|")
		},
		"ComesTooLateAtTheInstantOfExpiry": func(l *lab) {
			l.granted(mutex("a"))
			l.sleep(ttl)
			l.notHeld(l.renew("a", ttl))
			l.state("|")
		},
		"NeverMakesAWaiterAHolder": func(l *lab) {
			l.granted(mutex("a"))
			l.refused(mutex("b"))
			l.notHeld(l.renew("b", ttl))
			l.state("a | b")
			equal(l.t, "place lasts", l.e.Queue[0].Expires, l.now.Add(wait))
		},
		"ZeroTokenNamesNobody": func(l *lab) {
			l.granted(mutex("a"))
			l.ok(l.release("a", ttl)) // is kept, with no token
			l.notHeld(l.renew("", ttl))
			l.notHeld(l.release("", 0))
		},
	})
}

func TestRelease(t *testing.T) {
	each(t, map[string]func(l *lab){
		"SecondReleaseFindsNothing": func(l *lab) {
			l.granted(mutex("a"))
			l.ok(l.release("a", 0))
			l.notHeld(l.release("a", 0))
			l.state("|")
		},
		"StaleReleaseDoesNotFreeTheNewHolder": func(l *lab) {
			l.granted(mutex("a"))
			l.sleep(ttl)
			l.granted(mutex("b"))
			l.notHeld(l.release("a", 0))
			l.notHeld(l.renew("a", ttl))
			l.state("b |")
		},
		"ReleasedLeaseHasNoLockDelay": func(l *lab) {
			l.granted(delayed(mutex("a"), time.Minute))
			l.ok(l.release("a", 0))
			l.granted(mutex("b"))
		},
		"ReleaseFreesAlthoughTheClockRanBack": func(l *lab) {
			l.granted(mutex("a"))
			l.refused(mutex("b"))
			l.sleep(-sec)
			l.ok(l.release("a", 0))
			l.state("b |")
		},
	})
}

func TestMinHold(t *testing.T) {
	each(t, map[string]func(l *lab){
		"StaysHeldUntilThatLongAfterTheGrant": func(l *lab) {
			l.granted(mutex("a"))
			l.sleep(sec)
			l.ok(l.release("a", 5*sec))
			held := l.refused(mutex("b"))
			equal(l.t, "retry", held.RetryAfter, 4*sec)
			equal(l.t, "kept", held.Holder.Released, true)
			l.sleep(4*sec - µs)
			l.refused(mutex("b"))
			l.sleep(µs)
			l.granted(mutex("b"))
		},
		"LastsAlsoIfTheGrantTookEffectLate": func(l *lab) {
			l.e.Uncertainty = 5 * sec
			l.granted(mutex("a"))
			granted := l.now.Add(5 * sec) // at the end of the window
			l.sleep(5 * sec)
			l.e.Uncertainty = sec
			l.ok(l.release("a", 20*sec))
			equal(l.t, "end", l.e.Holders[0].Expires, granted.Add(20*sec))
		},
		"LastsNoLongerIfItIsReleasedEarly": func(l *lab) {
			l.e.Uncertainty = 5 * sec
			l.granted(mutex("a"))
			l.e.Uncertainty = sec
			l.ok(l.release("a", 20*sec)) // so the grant was no later than the end of this window
			equal(l.t, "end", l.e.Holders[0].Expires, l.now.Add(21*sec))
		},
		"OutlastsTheLeaseIfItIsLonger": func(l *lab) {
			l.granted(mutex("a"))
			l.ok(l.release("a", time.Hour))
			l.sleep(time.Hour - µs)
			l.refused(mutex("b"))
			l.sleep(µs)
			l.granted(mutex("b"))
		},
		"IsNoMoreThanTheLeaseWasHeld": func(l *lab) {
			l.granted(mutex("a"))
			l.sleep(5 * sec)
			l.ok(l.release("a", 5*sec))
			l.state("|")
		},
		"IsNobodysLease": func(l *lab) {
			l.granted(mutex("a"))
			l.ok(l.release("a", 5*sec))
			l.notHeld(l.renew("a", ttl))
			l.notHeld(l.release("a", 0))
			l.refused(mutex("a"))
			l.state("nobody | a")
		},
		"EndsWithoutALockDelay": func(l *lab) {
			l.granted(delayed(mutex("a"), time.Minute))
			l.ok(l.release("a", 5*sec))
			l.sleep(5 * sec)
			l.granted(mutex("b"))
		},
		"KeepsOnlyItsOwnWeight": func(l *lab) {
			l.granted(permits("a", 1, 2))
			l.granted(permits("b", 1, 2))
			l.ok(l.release("a", 5*sec))
			l.ok(l.release("b", 0))
			l.granted(permits("c", 1, 2))
			l.state("nobody c |")
		},
		"IsNeverLongerThanAskedAlthoughTheClockRanBack": func(l *lab) {
			l.granted(mutex("a"))
			l.sleep(-time.Hour)
			l.ok(l.release("a", 5*sec))
			l.sleep(5 * sec)
			l.granted(mutex("b"))
		},
		"CanBeBroken": func(l *lab) {
			g := l.granted(mutex("a"))
			l.ok(l.release("a", time.Hour))
			l.ok(l.breaks(g.Fence, 0, "boss"))
			l.said("")
			l.granted(mutex("b"))
		},
	})
}

func TestLockDelay(t *testing.T) {
	each(t, map[string]func(l *lab){
		"CountsFromTheExpiryNotFromItsDiscovery": func(l *lab) {
			l.granted(delayed(mutex("a"), time.Minute))
			l.sleep(ttl + 59*sec)
			held := l.refused(try(mutex("b")))
			equal(l.t, "closed for", held.ClosedFor, sec)
			equal(l.t, "retry", held.RetryAfter, sec)
			equal(l.t, "holders", held.Holders, 0)
			l.sleep(sec)
			l.granted(mutex("b"))
		},
		"IsOverWhenItIsDiscoveredTooLate": func(l *lab) {
			l.granted(delayed(mutex("a"), time.Minute))
			l.sleep(ttl + time.Minute)
			l.granted(mutex("b"))
			equal(l.t, "closed", l.e.Closed, 0)
		},
		"IsPartOfWhatTheOthersAreTold": func(l *lab) {
			l.granted(delayed(mutex("a"), time.Minute))
			equal(l.t, "retry", l.refused(try(mutex("b"))).RetryAfter, ttl+time.Minute)
		},
		"OfSeveralTheLastOneCounts": func(l *lab) {
			l.granted(delayed(reader("a"), time.Minute))
			l.granted(delayed(reader("b"), time.Second))
			l.sleep(ttl)
			equal(l.t, "closed for", l.refused(reader("c")).ClosedFor, time.Minute)
		},
		"ClosesForThoseWhoWouldFitBesideTheLivingToo": func(l *lab) {
			l.granted(delayed(reader("dead"), 5*sec))
			l.granted(reader("a"))
			l.sleep(ttl - sec)
			l.ok(l.renew("a", time.Hour))
			l.sleep(sec)
			held := l.refused(try(reader("b")))
			equal(l.t, "closed for", held.ClosedFor, 5*sec)
			equal(l.t, "retry", held.RetryAfter, 5*sec) // not an hour: a is not in the way
		},
		"WaitersAreServedWhenTheNameOpens": func(l *lab) {
			l.granted(delayed(mutex("a"), 5*sec))
			l.sleep(ttl)
			equal(l.t, "position", l.refused(mutex("b")).Position, 1)
			l.sleep(5 * sec)
			l.refused(mutex("c"))
			l.state("b | c")
		},
	})
}

func TestIdle(t *testing.T) {
	each(t, map[string]func(l *lab){
		"NotWhileAnybodyHoldsWaitsOrIsClosedOut": func(l *lab) {
			g := l.granted(mutex("a"))
			l.sleep(sec)
			equal(l.t, "idle while held", l.e.Idle(l.now), false)
			l.ok(l.breaks(g.Fence, 5*sec, "boss"))
			equal(l.t, "idle while closed", l.e.Idle(l.now), false)
			l.refused(mutex("b"))
			equal(l.t, "idle while waited for", l.e.Idle(l.now), false)
			l.ok(l.release("b", 0))
			l.sleep(5 * sec)
			equal(l.t, "idle while there is word for a", l.e.Idle(l.now), false)
			l.sleep(ttl)
			l.notHeld(l.renew("a", ttl))
			equal(l.t, "idle", l.e.Idle(l.now), true)
		},
		"NotWhileItIsOnlyClosed": func(l *lab) {
			g := l.granted(mutex("a"))
			l.ok(l.release("a", time.Hour))
			l.sleep(sec)
			l.ok(l.breaks(g.Fence, 5*sec, "boss"))
			equal(l.t, "idle", l.e.Idle(l.now), false)
			equal(l.t, "idle when it opens", l.e.Idle(l.now.Add(5*sec)), true)
		},
		"NotBeforeTheClockHasPassedTheLastFence": func(l *lab) {
			l.granted(with(mutex("a"), func(c *driver.Claim) { c.Fences = 1000 }))
			l.ok(l.release("a", 0))
			l.sleep(999 * µs)
			equal(l.t, "idle", l.e.Idle(l.now), false)
			l.sleep(µs)
			equal(l.t, "idle", l.e.Idle(l.now), true)
			l.e = &locktable.Entry{} // forgotten
			l.granted(mutex("b"))    // and the lab checks that its fence is higher
		},
		"NotOnAClockThatIsBefore1970": func(l *lab) {
			equal(l.t, "idle", l.e.Idle(-1), false)
			equal(l.t, "idle", l.e.Idle(0), false)
			equal(l.t, "idle", l.e.Idle(1), true)
		},
	})
}
