package redislock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

// The package comment promises two connections, and up to two more for steps that share
// scripts. Steps that share a script still get their own fences and answers.
func TestADriverHasTwoToFourConnections(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	count := func() int { return strings.Count(server.Do("CLIENT", "LIST"), "name=pawl") }
	d := openDriver(t, "redis://"+server.Addr)
	c, waiter := mutex("job"), queued("job")
	gets(t, d, c)
	armed(t, server)
	_, _ = d.Acquire(ctx, waiter)
	watch(t, d, "job")
	releases(t, d, c)
	if n := count(); n != 2 {
		t.Errorf("%d connections for one goroutine, want 2", n)
	}
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			last := uint64(0)
			for range 50 {
				c := mutex(fmt.Sprint("many", i))
				g, err := d.Acquire(ctx, c)
				if err != nil || g.Fence <= last {
					t.Errorf("fence %d after %d, %v", g.Fence, last, err)
				}
				last = g.Fence
				if err := errors.Join(renewed(d, c), d.Release(ctx, lease(c))); err != nil {
					t.Error(err)
				}
				if err := d.Release(ctx, lease(c)); !errors.Is(err, driver.ErrNoSuchLease) {
					t.Errorf("released twice: %v", err)
				}
			}
		})
	}
	all.Wait()
	if n := count(); n < 3 || n > 4 {
		t.Errorf("%d connections for 64 goroutines, want 3 or 4", n)
	}
}
