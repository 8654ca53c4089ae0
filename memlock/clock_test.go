package memlock_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/memlock"
)

// hour wants a lease of an hour to last so long on a driver's clock.
func hour(t *testing.T, d driver.Driver, pass func(time.Duration)) {
	t.Helper()
	for i, want := range []bool{true, false, true} {
		if got := takes(t, d, "x"); got != want {
			t.Errorf("claim %d is granted: %v", i, got)
		}
		pass([]time.Duration{time.Hour - time.Microsecond, time.Microsecond, 0}[i])
	}
}

func TestAClockStandsStillUntilItIsMoved(t *testing.T) {
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	c := memlock.NewClock(start)
	hour(t, memlock.New(&memlock.Options{Now: c.Now}), c.Advance)
	c.Advance(-time.Hour)
	if now := c.Now(); !now.Equal(start) {
		t.Errorf("the clock stands at %v, want %v", now, start)
	}
}

// Without a clock the time is the machine's, and in a bubble the bubble's.
func TestTheDefaultClockRunsByItself(t *testing.T) {
	bubble.Test(t, func(t *testing.T) { hour(t, memlock.New(nil), time.Sleep) })
}
