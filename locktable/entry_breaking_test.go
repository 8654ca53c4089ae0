package locktable_test

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

func TestBreak(t *testing.T) {
	each(t, map[string]func(l *lab){
		"FenceOfNobodyChangesNothing": func(l *lab) {
			g := l.granted(mutex("a"))
			l.notHeld(l.breaks(g.Fence+1, 5*sec, "boss"))
			equal(l.t, "changed", l.e.Changed, false)
		},
		"SaysForHowLongTheNameIsClosedForCertain": func(l *lab) {
			g := l.granted(mutex("a"))
			l.ok(l.breaks(g.Fence, 5*sec, "boss"))
			l.e.Uncertainty = sec // it may be as much later than it seems
			equal(l.t, "closed for", brokenBy(l.t, l.renew("a", ttl)).ClosedFor, 4*sec)
		},
		"WordForAThousandBrokenDoesNotGrowForEver": func(l *lab) {
			for i := range 5000 {
				c := forced(mutex(fmt.Sprint("w", i)))
				c.TTL = driver.MaxTTL
				if _, held := l.e.Acquire(l.now, c, ""); held != nil {
					l.t.Fatalf("refused: %v", held)
				}
			}
			if n := len(l.e.Append(nil)); n > 64<<10 {
				l.t.Fatalf("the entry takes %d bytes", n)
			}
			brokenBy(l.t, l.renew("w4998", ttl)) // the last ones are remembered
			equal(l.t, "remembered", len(l.e.Broken), 256)
		},
	})
}
