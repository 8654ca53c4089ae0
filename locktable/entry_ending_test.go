package locktable_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A renewal that does not extend the lease does not write it.
func TestARenewalThatDoesNotExtendWritesNothing(t *testing.T) {
	l := newFixture(t)
	l.wantGranted(mutex("a"))
	l.wantNoError(l.renew("a", ttl))
	equal(t, "changed", l.e.Changed, false)
}

func TestMinHold(t *testing.T) {
	runEach(t, map[string]func(l *fixture){
		"LastsEvenIfTheGrantTookEffectLate": func(l *fixture) {
			l.e.Uncertainty = 5 * sec
			l.wantGranted(mutex("a"))
			granted := l.now.Add(5 * sec) // at the end of the window
			l.sleep(5 * sec)
			l.e.Uncertainty = sec
			l.wantNoError(l.release("a", 20*sec))
			equal(l.t, "end", l.e.Holders[0].Expires, granted.Add(20*sec))
		},
		"LastsNoLongerIfItIsReleasedEarly": func(l *fixture) {
			l.e.Uncertainty = 5 * sec
			l.wantGranted(mutex("a"))
			l.e.Uncertainty = sec
			l.wantNoError(l.release("a", 20*sec)) // the grant was no later than the end of this window
			equal(l.t, "end", l.e.Holders[0].Expires, l.now.Add(21*sec))
		},
	})
}

func TestIdle(t *testing.T) {
	runEach(t, map[string]func(l *fixture){
		"NotWhileANameIsHeldClosedOrWaitedFor": func(l *fixture) {
			g := l.wantGranted(mutex("a"))
			l.sleep(sec)
			equal(l.t, "idle while held", l.e.Idle(l.now), false)
			l.wantNoError(l.breakLease(g.Fence, 5*sec, "boss"))
			equal(l.t, "idle while closed", l.e.Idle(l.now), false)
			l.wantHeld(mutex("b"))
			equal(l.t, "idle while waited for", l.e.Idle(l.now), false)
			l.wantNoError(l.release("b", 0))
			l.sleep(5 * sec)
			equal(l.t, "idle while the break of a's lease is remembered", l.e.Idle(l.now), false)
			l.sleep(ttl)
			l.wantNoLease(l.renew("a", ttl))
			equal(l.t, "idle", l.e.Idle(l.now), true)
		},
		"NotWhileItIsOnlyClosed": func(l *fixture) {
			g := l.wantGranted(mutex("a"))
			l.wantNoError(l.release("a", time.Hour))
			l.sleep(sec)
			l.wantNoError(l.breakLease(g.Fence, 5*sec, "boss"))
			equal(l.t, "idle", l.e.Idle(l.now), false)
			equal(l.t, "idle when it opens", l.e.Idle(l.now.Add(5*sec)), true)
		},
		"NotBeforeTheClockHasPassedTheLastFence": func(l *fixture) {
			l.wantGranted(with(mutex("a"), func(c *driver.Claim) { c.Fences = 1000 }))
			l.wantNoError(l.release("a", 0))
			l.sleep(999 * µs)
			equal(l.t, "idle", l.e.Idle(l.now), false)
			l.sleep(µs)
			equal(l.t, "idle", l.e.Idle(l.now), true)
			l.e = &locktable.Entry{}  // forgotten
			l.wantGranted(mutex("b")) // the fixture checks that its fence is higher
		},
		"NotOnAClockThatIsBefore1970": func(l *fixture) {
			equal(l.t, "idle", l.e.Idle(-1), false)
			equal(l.t, "idle", l.e.Idle(0), false)
			equal(l.t, "idle", l.e.Idle(1), true)
		},
	})
}
