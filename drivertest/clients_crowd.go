package drivertest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// TestHeldInACrowd lets 100 clients wait for one name for longer than its holder's TTL.
// The holder must keep its lease, and each waiter its place. open returns the driver of
// another client.
func TestHeldInACrowd(t *testing.T, open func() driver.Driver) {
	t.Helper()
	const clients, ttl = 100, 15 * time.Second
	client := func(o *pawl.Observer) *pawl.Client {
		c, err := pawl.New(open(), &pawl.Options{TTL: ttl, RetryFor: time.Minute, Observer: o})
		noError(t, err)
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		return c
	}
	holder := client(nil)
	lease, err := holder.Mutex("crowd").Lock(t.Context())
	noError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var moved atomic.Int64 // the number of times that a waiter moved back in the queue
	for range clients {
		last := 0
		c := client(&pawl.Observer{Queued: func(e pawl.QueuedEvent) {
			if last > 0 && e.Held.Position > last {
				moved.Add(1)
			}
			last = e.Held.Position
		}})
		all.Go(func() {
			if _, err := c.Mutex("crowd").Lock(ctx); ctx.Err() == nil {
				t.Errorf("Lock of a waiter returned %v", err)
			}
		})
	}
	waiting := func() int {
		e, err := holder.Inspect(t.Context(), "crowd")
		noError(t, err)
		return len(e.Waiters)
	}
	for waiting() < clients {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(ttl + ttl/3)
	if n := waiting(); n != clients || moved.Load() > 0 || lease.Err() != nil {
		t.Errorf("%d of %d clients wait; a waiter moved back %d times; the lease: %v", n, clients, moved.Load(), lease.Err())
	}
	cancel()
	all.Wait()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
