package locktable_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A lease that lasts longer already is not written again.
func TestARenewalThatChangesNothingWritesNothing(t *testing.T) {
	l := newLab(t)
	l.granted(mutex("a"))
	l.ok(l.renew("a", ttl))
	equal(t, "changed", l.e.Changed, false)
}

func TestMinHold(t *testing.T) {
	each(t, map[string]func(l *lab){
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
