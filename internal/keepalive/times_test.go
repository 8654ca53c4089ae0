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
			in := keepalive.RenewIn(ttl, term)
			if in > ttl/3 || in < ttl/4 {
				t.Fatalf("TTL %v is renewed after %v", ttl, in)
			}
			if a := trust.RequestTimeout(ttl); in+2*a > term && ttl > 20*time.Millisecond {
				t.Fatalf("TTL %v: %v and two requests of %v are more than the term", ttl, in, a)
			}
		}
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
