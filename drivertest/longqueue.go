package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// CheckLongQueue queues claims of two clients for one name, alternately, and fails unless
// they are served in that order. [Run] does so with a few claims. The time of many
// depends on how the backend stores a queue.
func CheckLongQueue(t testing.TB, a, b driver.Driver, waiters int) {
	t.Helper()
	clients := []driver.Driver{a, b}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	acquire := func(i int, c driver.Claim) (g driver.Grant, err error) {
		for range 20 { // a machine may stop for seconds
			if g, err = clients[i%2].Acquire(ctx, c); !errors.Is(err, driver.ErrUnavailable) {
				break
			}
		}
		return g, err
	}
	claims := make([]driver.Claim, waiters+1)
	for i := range claims {
		claims[i] = driver.Claim{
			Name: "long queue", Weight: driver.Exclusive, Limit: driver.Unlimited, Token: driver.NewToken(),
			TTL: time.Hour, Queue: true, QueueTTL: time.Hour,
		}
		if _, err := acquire(i, claims[i]); i > 0 && !errors.Is(err, driver.ErrHeld) || i == 0 && err != nil {
			t.Fatalf("claim %d: %v", i, err)
		}
	}
	var last uint64
	for i, c := range claims {
		g, err := acquire(i, c)
		if err != nil || g.Fence <= last {
			t.Fatalf("claim %d, after all claims before it: fence %d after %d, %v", i, g.Fence, last, err)
		}
		last = g.Fence
		if behind := i + 1 + i%7; behind < len(claims) {
			if _, err := acquire(behind, claims[behind]); !errors.Is(err, driver.ErrHeld) {
				t.Fatalf("claim %d, while %d holds: %v; want ErrHeld", behind, i, err)
			}
		}
		isUnknown := false
		for range 20 {
			if err = clients[i%2].Release(ctx, driver.LeaseRef{Name: c.Name, Token: c.Token}); !errors.Is(err, driver.ErrUnavailable) {
				break
			}
			isUnknown = true
		}
		if err != nil && (!isUnknown || !errors.Is(err, driver.ErrNoSuchLease)) {
			t.Fatalf("release %d: %v", i, err)
		}
	}
}
