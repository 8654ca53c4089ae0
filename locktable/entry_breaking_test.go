package locktable_test

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

func TestBreak(t *testing.T) {
	runEach(t, map[string]func(fx *fixture){
		"AnUnknownFenceChangesNothing": func(fx *fixture) {
			g := fx.wantGranted(mutex("a"))
			fx.wantNoLease(fx.breakLease(g.Fence+1, 5*sec, "boss"))
			equal(fx.t, "changed", fx.entry.Changed, false)
		},
		"TheErrorHasTheLeastTimeForWhichTheNameIsClosed": func(fx *fixture) {
			g := fx.wantGranted(mutex("a"))
			fx.wantNoError(fx.breakLease(g.Fence, 5*sec, "boss"))
			fx.entry.Uncertainty = sec // the time may be later by this
			equal(fx.t, "closed for", brokenBy(fx.t, fx.renew("a", ttl)).ClosedFor, 4*sec)
		},
		"OnlySomeBrokenLeasesAreRemembered": func(fx *fixture) {
			for i := range 5000 {
				c := withForce(mutex(fmt.Sprint("w", i)))
				c.TTL = driver.MaxTTL
				if _, held := fx.entry.Acquire(fx.now, c, ""); held != nil {
					fx.t.Fatalf("refused: %v", held)
				}
			}
			if n := len(fx.entry.Append(nil)); n > 64<<10 {
				fx.t.Fatalf("the entry takes %d bytes", n)
			}
			brokenBy(fx.t, fx.renew("w4998", ttl)) // the entry remembers the last ones
			equal(fx.t, "remembered", len(fx.entry.Broken), 256)
		},
	})
}
