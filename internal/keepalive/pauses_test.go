package keepalive_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/keepalive"
	"github.com/pawl-go/pawl/internal/trust"
)

func TestARenewalLeavesTimeForTwoMoreRequests(t *testing.T) {
	for _, ttl := range []time.Duration{10 * time.Millisecond, time.Second, 30 * time.Second, 30 * 24 * time.Hour} {
		term := ttl - trust.DefaultMargin(ttl)
		for range 1000 {
			pause := keepalive.RenewIn(ttl, 0, term)
			if pause > ttl/3 || pause < ttl/4 {
				t.Fatalf("TTL %v is renewed after %v", ttl, pause)
			}
			if a := trust.RequestTimeout(ttl); pause+2*a > term && ttl > 20*time.Millisecond {
				t.Fatalf("TTL %v: %v and two requests of %v are more than the term", ttl, pause, a)
			}
		}
	}
}

// The answer may have taken long, or a waiter may have learned late of its grant.
func TestARenewalIsDueAThirdOfTheTTLAfterTheLastRequest(t *testing.T) {
	const ttl, term = 600 * time.Millisecond, 540 * time.Millisecond
	for _, c := range []struct{ since, least, most time.Duration }{
		{0, 175 * time.Millisecond, 200 * time.Millisecond},
		{150 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond},
		{200 * time.Millisecond, 0, 0},
		{290 * time.Millisecond, 0, 0},
	} {
		for range 100 {
			if pause := keepalive.RenewIn(ttl, c.since, term-c.since); pause < c.least || pause > c.most {
				t.Fatalf("%v after the request it is renewed in %v, want %v to %v", c.since, pause, c.least, c.most)
			}
		}
	}
	if pause := keepalive.RenewIn(ttl, 0, 10*time.Millisecond); pause != 5*time.Millisecond {
		t.Errorf("with 10ms left it is renewed in %v", pause)
	}
}

func TestRetryPausesStayFarBelowTheTerm(t *testing.T) {
	for _, ttl := range []time.Duration{10 * time.Millisecond, time.Second, 30 * time.Second} {
		for n := range 100 {
			if d := keepalive.RetryIn(n, ttl); d <= 0 || d > max(ttl/20, 2*time.Millisecond) {
				t.Fatalf("TTL %v: pause %d is %v", ttl, n, d)
			}
		}
	}
}
