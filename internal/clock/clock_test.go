package clock

import (
	"testing"
	"time"
)

func TestSinceCountsSleep(t *testing.T) {
	first := Reading{Mono: time.Now(), Slept: time.Hour}
	second := Reading{Mono: first.Mono.Add(time.Second), Slept: first.Slept + time.Minute}
	if d := second.Since(first); d != 61*time.Second {
		t.Errorf("Since returns %v, want a second plus a minute of sleep", d)
	}
}

func TestClockMeasuresSleepButNotASetWallClock(t *testing.T) {
	c := New()
	first := c.Now()
	if second := c.Now(); second.Slept != 0 || second.Since(first) < 0 {
		t.Errorf("after no sleep: slept %v, and %v have passed", second.Slept, second.Since(first))
	}
	c.drift.Store(int64(time.Hour)) // as if the wall clock had been set since
	if r := c.Now(); r.Slept != 0 {
		t.Errorf("a set clock counts as %v of sleep", r.Slept)
	}
	c.baseSinceBoot -= time.Hour // as if the boot clock had gone on for an hour
	c.drift.Store(int64(time.Hour))
	if r := c.Now(); r.Slept < 59*time.Minute || r.Slept > 61*time.Minute {
		t.Errorf("an hour of sleep counts as %v", r.Slept)
	}
}
