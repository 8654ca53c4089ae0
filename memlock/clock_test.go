package memlock_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/memlock"
)

func TestAClockStandsStillUntilItIsMoved(t *testing.T) {
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	c := memlock.NewClock(start)
	d := memlock.New(&memlock.Options{Now: c.Now})
	if !takes(t, d, "x") { // for an hour
		t.Fatal("not granted")
	}
	c.Advance(time.Hour - time.Microsecond)
	if takes(t, d, "x") {
		t.Error("granted before the hour was over")
	}
	c.Advance(time.Microsecond)
	if !takes(t, d, "x") {
		t.Error("not granted after an hour")
	}
	c.Advance(-time.Hour)
	if now := c.Now(); !now.Equal(start) {
		t.Errorf("the clock stands at %v, want %v", now, start)
	}
}

// Without a clock the time is the machine's, and in a bubble the bubble's.
func TestTheDefaultClockRunsByItself(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := memlock.New(nil)
		if !takes(t, d, "x") {
			t.Fatal("not granted")
		}
		time.Sleep(time.Hour - time.Microsecond)
		if takes(t, d, "x") {
			t.Error("granted before the hour was over")
		}
		time.Sleep(time.Microsecond)
		if !takes(t, d, "x") {
			t.Error("not granted after an hour")
		}
	})
}
