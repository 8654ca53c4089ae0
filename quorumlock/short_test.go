package quorumlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/bubble"
)

// The leases are the shortest, and three round trips take longer than one attempt.
// Permits are granted all the same, though they need a second count, and no claim waits
// for long.
func TestPermitsOfAShortTTLAreGrantedOverASlowLine(t *testing.T) {
	const clients, rounds, maxDelay = 12, 10, 20 * time.Millisecond // of each direction
	for _, ttl := range []time.Duration{300 * time.Millisecond, 500 * time.Millisecond, time.Second} {
		bubble.Test(t, func(t *testing.T) {
			w, all := newCrowd(t, 3, clients, maxDelay)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var mu sync.Mutex
			var longest time.Duration
			var done sync.WaitGroup
			for _, c := range all {
				done.Go(func() {
					for range rounds {
						began := time.Now()
						l, err := c.Semaphore("jobs", 3, pawl.WithTTL(ttl)).Acquire(ctx, 1)
						if err != nil {
							t.Errorf("Lock: %v", err)
							return
						}
						mu.Lock()
						longest = max(longest, time.Since(began))
						mu.Unlock()
						time.Sleep(5 * time.Millisecond)
						_ = l.Release(t.Context())
					}
				})
			}
			done.Wait()
			t.Logf("TTL %v: the longest wait was %v", ttl, longest)
			if longest > 10*time.Second {
				t.Errorf("TTL %v: the longest wait was %v", ttl, longest)
			}
			w.close(all)
		})
	}
}
