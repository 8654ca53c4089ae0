package drivertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// steadyOptions keep a client from losing a lease or a place on a slow machine.
var steadyOptions = &pawl.Options{TTL: 5 * time.Minute, QueueTTL: 20 * time.Second, RequestTimeout: 10 * time.Second, RetryFor: time.Minute}

// TestAllInACrowd runs 64 clients. Each locks two to four of ten names with pawl.All, six
// times. Some of the names are semaphores of three permits. No two leases may exclude
// each other, and each client gets all of its turns. open returns the driver of another
// client.
func TestAllInACrowd(t *testing.T, open func() driver.Driver) {
	t.Helper()
	const clients, turns, names, permits, semaphores = 64, 6, 10, 3, 3
	var inside [names]atomic.Int64
	var longest atomic.Int64
	bounded, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // only a deadlock takes that long
	defer cancel()
	var all sync.WaitGroup
	for range clients {
		c, err := pawl.New(open(), steadyOptions)
		noError(t, err)
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			for range turns {
				some := rand.Perm(names)[:2+rand.IntN(3)]
				parts := make([]pawl.Lockable, len(some))
				for i, n := range some {
					if name := fmt.Sprintf("crowd/%d", n); n < semaphores {
						parts[i] = c.Semaphore(name, permits).Permits(1)
					} else {
						parts[i] = c.Mutex(name)
					}
				}
				began := time.Now()
				err := pawl.All(parts...).Do(bounded, func(context.Context) error {
					longest.Store(max(longest.Load(), int64(time.Since(began))))
					for _, n := range some {
						allowed := int64(1)
						if n < semaphores {
							allowed = permits
						}
						if in := inside[n].Add(1); in > allowed {
							t.Errorf("VIOLATION: %d leases of name %d", in, n)
						}
						defer inside[n].Add(-1)
					}
					time.Sleep(time.Millisecond)
					return nil
				})
				if err != nil {
					t.Errorf("after %v: %v", time.Since(began), err)
					return
				}
			}
		})
	}
	all.Wait()
	t.Logf("the longest wait was %v", time.Duration(longest.Load()).Round(time.Millisecond))
}

// BenchmarkAll measures an acquire and a release of one free lock, and of several with
// pawl.All.
func BenchmarkAll(b *testing.B, d driver.Driver) {
	b.Helper()
	c, err := pawl.New(d, steadyOptions)
	noError(b, err)
	b.Cleanup(func() { _ = c.Close() })
	work := func(context.Context) error { return nil }
	b.Run("One", func(b *testing.B) {
		for b.Loop() {
			noError(b, c.Mutex("all/0").Do(context.Background(), work))
		}
	})
	for _, n := range []int{2, 4, 16} {
		parts := make([]pawl.Lockable, n)
		for i := range parts {
			parts[i] = c.Mutex(fmt.Sprintf("all/%d", i))
		}
		b.Run(fmt.Sprintf("All%d", n), func(b *testing.B) {
			for b.Loop() {
				noError(b, pawl.All(parts...).Do(context.Background(), work))
			}
		})
	}
}
