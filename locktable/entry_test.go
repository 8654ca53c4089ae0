package locktable_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

func TestATryThatIsRefusedWritesNothing(t *testing.T) {
	l := newFixture(t)
	l.wantGranted(mutex("a"))
	l.wantHeld(try(mutex("b")))
	equal(t, "changed", l.e.Changed, false)
}

func TestSignalsOfOneStepAreNotOverwrittenByTheNext(t *testing.T) {
	l := newFixture(t)
	l.wantGranted(mutex("a"))
	l.wantHeld(mutex("b"))
	l.wantHeld(mutex("c"))
	l.wantNoError(l.release("a", 0))
	first := l.e.Signals
	l.wantNoError(l.release("b", 0))
	equal(t, "first signal", first[0].Inbox, "b")
	equal(t, "second signal", l.e.Signals[0].Inbox, "c")
}

func TestInstantAddRoundsUp(t *testing.T) {
	for d, want := range map[time.Duration]locktable.Instant{0: 0, 1: 1, µs: 1, µs + 1: 2, sec: 1e6, driver.MaxTTL: 30 * 86400 * 1e6} {
		equal(t, fmt.Sprint("instant after ", d), locktable.Instant(0).Add(d), want)
	}
	equal(t, "time until", locktable.Instant(5).Until(3), -2*µs)
	equal(t, "instant of its time", locktable.At(start.Time()), start)
}
