package trust_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
	"github.com/pawl-go/pawl/internal/trust"
)

var start = clock.Reading{Mono: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Slept: time.Hour}

func after(awake, asleep time.Duration) clock.Reading {
	return clock.Reading{Mono: start.Mono.Add(awake), Slept: start.Slept + asleep}
}

func TestTermEndsBeforeTheLeaseOnBothClocks(t *testing.T) {
	term := trust.NewTerm(start, 30*time.Second, trust.DefaultMargin(30*time.Second))
	for _, c := range []struct {
		awake, asleep, left time.Duration
	}{
		{0, 0, 27 * time.Second},
		{27 * time.Second, 0, 0},
		{10 * time.Second, 10 * time.Second, 7 * time.Second},
		{0, time.Minute, -33 * time.Second},
	} {
		now := after(c.awake, c.asleep)
		if got := term.Left(now); got != c.left {
			t.Errorf("after %v awake and %v asleep, Left is %v, want %v", c.awake, c.asleep, got, c.left)
		}
		if got := term.LeaseLeft(now); got != c.left+3*time.Second {
			t.Errorf("LeaseLeft is %v, want the margin more than the term's %v", got, c.left)
		}
	}
}

func TestARenewalNeverShortensATerm(t *testing.T) {
	term := trust.NewTerm(start, 30*time.Second, 3*time.Second)
	sent := after(10*time.Second, 0)
	for ttl, want := range map[time.Duration]time.Duration{
		30 * time.Second: 27 * time.Second,
		20 * time.Second: 18 * time.Second,
		5 * time.Second:  17 * time.Second, // the old end
	} {
		if left := term.Renewed(sent, ttl, ttl/10).Left(sent); left != want {
			t.Errorf("a renewal to %v leaves %v, want %v", ttl, left, want)
		}
	}
}

func TestTermIsFreshUntilAQuarterIsLeft(t *testing.T) {
	term := trust.NewTerm(start, 30*time.Second, 2*time.Second)
	for at, want := range map[time.Duration]bool{0: true, 20 * time.Second: true, 21 * time.Second: false, time.Hour: false} {
		if term.Fresh(after(at, 0)) != want {
			t.Errorf("after %v: Fresh is %v", at, !want)
		}
	}
	if trust.NewTerm(start, time.Second, time.Second).Fresh(start) {
		t.Error("a term without length is fresh")
	}
}

func TestDefaultMargin(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		10 * time.Millisecond: 5 * time.Millisecond,
		50 * time.Millisecond: 10 * time.Millisecond,
		time.Second:           100 * time.Millisecond,
		30 * time.Second:      3 * time.Second,
	} {
		if got := trust.DefaultMargin(ttl); got != want {
			t.Errorf("margin of %v is %v, want %v", ttl, got, want)
		}
	}
}

func TestBreakDelayIsTheTTLOfTheLease(t *testing.T) {
	holders := []driver.Holder{{Fence: 5, TTL: time.Second}, {Fence: 9, TTL: time.Minute}, {Fence: 11}}
	for fence, want := range map[uint64]time.Duration{5: time.Second, 9: time.Minute, 11: 0, 6: time.Minute} {
		if got := trust.BreakDelay(holders, fence); got != want {
			t.Errorf("fence %d: %v, want %v", fence, got, want)
		}
	}
	if got := trust.BreakDelay(nil, 5); got != 0 {
		t.Errorf("without holders: %v", got)
	}
}
