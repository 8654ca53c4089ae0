package locktable_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A renewal that does not extend the lease does not write it.
func TestARenewalThatDoesNotExtendWritesNothing(t *testing.T) {
	fx := newFixture(t)
	fx.wantGranted(mutex("a"))
	fx.wantNoError(fx.renew("a", ttl))
	equal(t, "changed", fx.entry.Changed, false)
}

func TestMinHold(t *testing.T) {
	runEach(t, map[string]func(fx *fixture){
		"LastsEvenIfTheGrantTookEffectLate": func(fx *fixture) {
			fx.entry.Uncertainty = 5 * sec
			fx.wantGranted(mutex("a"))
			granted := fx.now.Add(5 * sec) // at the end of the window
			fx.sleep(5 * sec)
			fx.entry.Uncertainty = sec
			fx.wantNoError(fx.release("a", 20*sec))
			equal(fx.t, "end", fx.entry.Holders[0].Expires, granted.Add(20*sec))
		},
		"LastsNoLongerIfItIsReleasedEarly": func(fx *fixture) {
			fx.entry.Uncertainty = 5 * sec
			fx.wantGranted(mutex("a"))
			fx.entry.Uncertainty = sec
			fx.wantNoError(fx.release("a", 20*sec)) // the grant was no later than the end of this window
			equal(fx.t, "end", fx.entry.Holders[0].Expires, fx.now.Add(21*sec))
		},
	})
}

func TestIdle(t *testing.T) {
	runEach(t, map[string]func(fx *fixture){
		"NotWhileANameIsHeldClosedOrWaitedFor": func(fx *fixture) {
			g := fx.wantGranted(mutex("a"))
			fx.sleep(sec)
			equal(fx.t, "idle while held", fx.entry.Idle(fx.now), false)
			fx.wantNoError(fx.breakLease(g.Fence, 5*sec, "boss"))
			equal(fx.t, "idle while closed", fx.entry.Idle(fx.now), false)
			fx.wantHeld(mutex("b"))
			equal(fx.t, "idle while waited for", fx.entry.Idle(fx.now), false)
			fx.wantNoError(fx.release("b", 0))
			fx.sleep(5 * sec)
			equal(fx.t, "idle while the break of a's lease is remembered", fx.entry.Idle(fx.now), false)
			fx.sleep(ttl)
			fx.wantNoLease(fx.renew("a", ttl))
			equal(fx.t, "idle", fx.entry.Idle(fx.now), true)
		},
		"NotWhileItIsOnlyClosed": func(fx *fixture) {
			g := fx.wantGranted(mutex("a"))
			fx.wantNoError(fx.release("a", time.Hour))
			fx.sleep(sec)
			fx.wantNoError(fx.breakLease(g.Fence, 5*sec, "boss"))
			equal(fx.t, "idle", fx.entry.Idle(fx.now), false)
			equal(fx.t, "idle when it opens", fx.entry.Idle(fx.now.Add(5*sec)), true)
		},
		"NotBeforeTheClockHasPassedTheLastFence": func(fx *fixture) {
			fx.wantGranted(with(mutex("a"), func(c *driver.Claim) { c.Fences = 1000 }))
			fx.wantNoError(fx.release("a", 0))
			fx.sleep(999 * µs)
			equal(fx.t, "idle", fx.entry.Idle(fx.now), false)
			fx.sleep(µs)
			equal(fx.t, "idle", fx.entry.Idle(fx.now), true)
			fx.entry = &locktable.Entry{} // forgotten
			fx.wantGranted(mutex("b"))    // the fixture checks that its fence is higher
		},
		"NotOnAClockThatIsBefore1970": func(fx *fixture) {
			equal(fx.t, "idle", fx.entry.Idle(-1), false)
			equal(fx.t, "idle", fx.entry.Idle(0), false)
			equal(fx.t, "idle", fx.entry.Idle(1), true)
		},
	})
}
