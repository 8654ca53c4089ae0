package locktable_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

func TestATryThatIsRefusedWritesNothing(t *testing.T) {
	fx := newFixture(t)
	fx.wantGranted(mutex("a"))
	fx.wantHeld(try(mutex("b")))
	equal(t, "changed", fx.entry.Changed, false)
}

func TestSignalsOfOneStepAreNotOverwrittenByTheNext(t *testing.T) {
	fx := newFixture(t)
	fx.wantGranted(mutex("a"))
	fx.wantHeld(mutex("b"))
	fx.wantHeld(mutex("c"))
	fx.wantNoError(fx.release("a", 0))
	first := fx.entry.Signals
	fx.wantNoError(fx.release("b", 0))
	equal(t, "first signal", first[0].Inbox, "b")
	equal(t, "second signal", fx.entry.Signals[0].Inbox, "c")
}

func TestInstantAddRoundsUp(t *testing.T) {
	for d, want := range map[time.Duration]locktable.Instant{0: 0, 1: 1, µs: 1, µs + 1: 2, sec: 1e6, driver.MaxTTL: 30 * 86400 * 1e6} {
		equal(t, fmt.Sprint("instant after ", d), locktable.Instant(0).Add(d), want)
	}
	equal(t, "time until", locktable.Instant(5).Until(3), -2*µs)
	equal(t, "instant of its time", locktable.At(start.Time()), start)
}
