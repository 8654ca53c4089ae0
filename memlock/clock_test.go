package memlock_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/memlock"
)

// wantLeaseOfAnHour requires that a lease of an hour lasts an hour on the driver's clock.
func wantLeaseOfAnHour(t *testing.T, d driver.Driver, advance func(time.Duration)) {
	t.Helper()
	for i, want := range []bool{true, false, true} {
		if got := isGranted(t, d, "x"); got != want {
			t.Errorf("claim %d was granted: %v, want %v", i, got, want)
		}
		advance([]time.Duration{time.Hour - time.Microsecond, time.Microsecond, 0}[i])
	}
}

func TestAClockStandsStillUntilItIsMoved(t *testing.T) {
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	c := memlock.NewClock(start)
	wantLeaseOfAnHour(t, memlock.New(&memlock.Options{Now: c.Now}), c.Advance)
	c.Advance(-time.Hour)
	if now := c.Now(); !now.Equal(start) {
		t.Errorf("the clock shows %v, want %v", now, start)
	}
}

// By default the clock is the machine's, and in a bubble the bubble's.
func TestTheDefaultClockRunsByItself(t *testing.T) {
	bubble.Test(t, func(t *testing.T) { wantLeaseOfAnHour(t, memlock.New(nil), time.Sleep) })
}
