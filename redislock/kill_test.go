package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/redistest"
)

// The server ends connections of every kind between any two steps: no lease is lost by
// that, and no waiter is left behind.
func TestConnectionsAreKilledBetweenTheSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: bad days")
	}
	t.Parallel()
	for _, kind := range []string{"normal", "pubsub", "replica", "master"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			kill := func() { server.Do("CLIENT", "KILL", "TYPE", kind) }
			a, b := client(t, server), client(t, server)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()

			last := uint64(0)
			for range 3 {
				kill()
				first, err := a.Mutex("job").Lock(ctx)
				if err != nil || first.Fence() <= last {
					t.Fatalf("%v, %v after fence %d", first, err, last)
				}
				kill()
				next := make(chan *pawl.Lease, 1)
				go func() {
					l, err := b.Mutex("job").Lock(ctx)
					if err != nil {
						t.Error(err)
					}
					next <- l
				}()
				for waits := false; !waits; time.Sleep(5 * time.Millisecond) {
					e, err := a.Inspect(ctx, "job")
					waits = err == nil && len(e.Waiters) == 1
					if ctx.Err() != nil {
						t.Fatal("nobody waits")
					}
				}
				kill()
				if first.Err() != nil {
					t.Errorf("lost: %v", first.Err())
				}
				// If the server cannot be reached, the client goes on trying.
				if err := first.Release(ctx); err != nil && !errors.Is(err, pawl.ErrUnavailable) {
					t.Errorf("release: %v", err)
				}
				kill()
				second := <-next
				if second == nil {
					return
				}
				if second.Fence() <= first.Fence() {
					t.Errorf("fence %d after %d", second.Fence(), first.Fence())
				}
				last = second.Fence()
				kill()
				if err := second.Release(ctx); err != nil && !errors.Is(err, pawl.ErrUnavailable) {
					t.Errorf("release: %v", err)
				}
			}
		})
	}
}

func client(t *testing.T, server *redistest.Server) *pawl.Client {
	t.Helper()
	c, err := pawl.Open(t.Context(), "redis://"+server.Addr, &pawl.Options{QueueTTL: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
