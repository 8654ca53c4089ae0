package keepalive_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/keepalive"
	"github.com/pawl-go/pawl/internal/trust"
)

func TestRenewalComesInTimeForTwoMoreRequests(t *testing.T) {
	for _, ttl := range []time.Duration{10 * time.Millisecond, time.Second, 30 * time.Second, 30 * 24 * time.Hour} {
		term := ttl - trust.DefaultMargin(ttl)
		for range 1000 {
			in := keepalive.RenewIn(ttl, 0, term)
			if in > ttl/3 || in < ttl/4 {
				t.Fatalf("TTL %v is renewed after %v", ttl, in)
			}
			if a := trust.RequestTimeout(ttl); in+2*a > term && ttl > 20*time.Millisecond {
				t.Fatalf("TTL %v: %v and two requests of %v are more than the term", ttl, in, a)
			}
		}
	}
}

// The answer may have taken long, or a waiter may not have learned of its grant.
func TestRenewalComesAThirdOfTheTTLAfterTheRequestThatTheTermCountsFrom(t *testing.T) {
	const ttl, term = 600 * time.Millisecond, 540 * time.Millisecond
	for _, c := range []struct{ since, least, most time.Duration }{
		{0, 175 * time.Millisecond, 200 * time.Millisecond},
		{150 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond},
		{200 * time.Millisecond, 0, 0},
		{290 * time.Millisecond, 0, 0},
	} {
		for range 100 {
			if in := keepalive.RenewIn(ttl, c.since, term-c.since); in < c.least || in > c.most {
				t.Fatalf("%v after the request it is renewed in %v, want %v to %v", c.since, in, c.least, c.most)
			}
		}
	}
	if in := keepalive.RenewIn(ttl, 0, 10*time.Millisecond); in != 5*time.Millisecond {
		t.Errorf("with 10ms left it is renewed in %v", in)
	}
}

func TestRetriesGrowAndStayBelowTheTerm(t *testing.T) {
	for _, ttl := range []time.Duration{10 * time.Millisecond, time.Second, 30 * time.Second} {
		for n := range 100 {
			if d := keepalive.RetryIn(n, ttl); d <= 0 || d > max(ttl/20, 2*time.Millisecond) {
				t.Fatalf("TTL %v: pause %d is %v", ttl, n, d)
			}
		}
	}
}
