package locktable_test

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

func TestBreak(t *testing.T) {
	runEach(t, map[string]func(l *fixture){
		"AnUnknownFenceChangesNothing": func(l *fixture) {
			g := l.wantGranted(mutex("a"))
			l.wantNoLease(l.breakLease(g.Fence+1, 5*sec, "boss"))
			equal(l.t, "changed", l.e.Changed, false)
		},
		"TheErrorHasTheLeastTimeForWhichTheNameIsClosed": func(l *fixture) {
			g := l.wantGranted(mutex("a"))
			l.wantNoError(l.breakLease(g.Fence, 5*sec, "boss"))
			l.e.Uncertainty = sec // the time may be later by this
			equal(l.t, "closed for", brokenBy(l.t, l.renew("a", ttl)).ClosedFor, 4*sec)
		},
		"OnlySomeBrokenLeasesAreRemembered": func(l *fixture) {
			for i := range 5000 {
				c := withForce(mutex(fmt.Sprint("w", i)))
				c.TTL = driver.MaxTTL
				if _, held := l.e.Acquire(l.now, c, ""); held != nil {
					l.t.Fatalf("refused: %v", held)
				}
			}
			if n := len(l.e.Append(nil)); n > 64<<10 {
				l.t.Fatalf("the entry takes %d bytes", n)
			}
			brokenBy(l.t, l.renew("w4998", ttl)) // the entry remembers the last ones
			equal(l.t, "remembered", len(l.e.Broken), 256)
		},
	})
}
