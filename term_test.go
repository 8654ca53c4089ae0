package pawl

import (
	"testing"
	"time"
)

func TestTermEndsBeforeTheLeaseOnBothClocks(t *testing.T) {
	start := reading{mono: time.Now(), slept: time.Hour}
	tm := newTerm(start, 30*time.Second, defaultMargin(30*time.Second))
	for _, c := range []struct {
		awake, asleep, left time.Duration
	}{
		{0, 0, 27 * time.Second},
		{27 * time.Second, 0, 0},
		{10 * time.Second, 10 * time.Second, 7 * time.Second},
		{0, time.Minute, -33 * time.Second},
	} {
		now := reading{mono: start.mono.Add(c.awake), slept: start.slept + c.asleep}
		if got := tm.left(now); got != c.left {
			t.Errorf("after %v awake and %v asleep %v is left, want %v", c.awake, c.asleep, got, c.left)
		}
		if got := tm.leaseLeft(now); got != c.left+3*time.Second {
			t.Errorf("the lease has %v left, want the margin more than the term's %v", got, c.left)
		}
	}
}

func TestMargin(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		10 * time.Millisecond: 5 * time.Millisecond,
		50 * time.Millisecond: 10 * time.Millisecond,
		time.Second:           100 * time.Millisecond,
		30 * time.Second:      3 * time.Second,
	} {
		if got := defaultMargin(ttl); got != want {
			t.Errorf("margin of %v is %v, want %v", ttl, got, want)
		}
	}
}

func TestRenewalComesInTimeForTwoMoreAttempts(t *testing.T) {
	for _, ttl := range []time.Duration{10 * time.Millisecond, time.Second, 30 * time.Second, 30 * 24 * time.Hour} {
		for range 1000 {
			in := renewIn(ttl, ttl-defaultMargin(ttl))
			if in > ttl/3 || in < ttl/4 {
				t.Fatalf("TTL %v is renewed after %v", ttl, in)
			}
			if a := requestTimeout(ttl); in+2*a > ttl-defaultMargin(ttl) && ttl > 20*time.Millisecond {
				t.Fatalf("TTL %v: %v and two attempts of %v are more than the term", ttl, in, a)
			}
		}
	}
}

func TestRetriesGrowAndStayBelowTheTerm(t *testing.T) {
	for _, ttl := range []time.Duration{10 * time.Millisecond, time.Second, 30 * time.Second} {
		for n := range 100 {
			if d := retryIn(n, ttl); d <= 0 || d > max(ttl/20, 2*time.Millisecond) {
				t.Fatalf("TTL %v: pause %d is %v", ttl, n, d)
			}
		}
	}
}

func TestClockNoticesSleepAndNotASteppedWallClock(t *testing.T) {
	c := newClock()
	first := c.now()
	if second := c.now(); second.slept != 0 || second.since(first) > 0 {
		t.Errorf("slept %v", second.slept)
	}
	c.parted.Store(int64(time.Hour)) // as if the wall clock had been set since
	if r := c.now(); r.slept != 0 {
		t.Errorf("a set clock counts as %v of sleep", r.slept)
	}
	c.boot -= time.Hour // as if the boot clock had gone on for an hour
	c.parted.Store(int64(time.Hour))
	if r := c.now(); r.slept < 59*time.Minute || r.slept > 61*time.Minute {
		t.Errorf("an hour of sleep counts as %v", r.slept)
	}
}
