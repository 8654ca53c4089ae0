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
		"PartsOfAMicrosecondAreRoundedUp": func(l *lab) {
			l.granted(with(mutex("a"), func(c *driver.Claim) { c.TTL = 10*ms + 1 }))
			l.sleep(10 * ms)
			l.refused(try(mutex("b")))
			l.sleep(µs)
			l.granted(try(mutex("b")))
		},
		"ClockThatWasNeverSetStillFences": func(l *lab) {
			l.now = 0
			equal(l.t, "fence", l.granted(mutex("a")).Fence, 1)
			l.ok(l.release("a", 0))
			equal(l.t, "fence", l.granted(mutex("b")).Fence, 2)
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
