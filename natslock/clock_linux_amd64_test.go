package natslock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/internal/timeshift"
)

// The server's clock is set ahead by a minute, then back by two, then right, while a name
// is held and waited for. Holder and waiter notice nothing, because their leases are
// longer. Leases that begin then last as long as they should.
func TestTheServersClockIsSet(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it sets a server's clock")
	}
	t.Parallel()
	clock := timeshift.NewGo(t, 0)
	server := natstest.StartWith(t, clock.Start)
	a, b := start(t, "nats://"+server.Addr), start(t, "nats://"+server.Addr)
	_, js := connect(t, server)
	const long = 5 * time.Minute
	holder := mutex("job")
	holder.TTL = long
	last := gets(t, a, holder).Fence
	for _, by := range []time.Duration{time.Minute, -time.Minute, 0} {
		waiter := mutex("job")
		waiter.TTL, waiter.QueueTTL, waiter.Queue = long, long, true
		isRefused(t, b, waiter)
		clock.Set(by)
		soon(t, "the server's clock", func(context.Context) error {
			if off := time.Until(bucketInfo(t, js).TimeStamp); (off - by).Abs() > 5*time.Second {
				return fmt.Errorf("it is off by %v; want %v", off, by)
			}
			return nil
		})
		renews(t, a, holder)
		isRefused(t, b, waiter)
		short, other := mutex("short"), mutex("short")
		short.TTL = 4 * time.Second
		began := time.Now()
		gets(t, a, short)
		soon(t, "the end of a short lease", func(ctx context.Context) error {
			_, err := b.Acquire(ctx, other)
			if took := time.Since(began); err == nil && took < short.TTL {
				t.Errorf("by %v: a lease of %v ended after %v", by, short.TTL, took)
			}
			return err
		})
		releases(t, b, other)
		releases(t, a, holder)
		g := gets(t, b, waiter)
		if g.Fence <= last {
			t.Errorf("by %v: fence %d after %d", by, g.Fence, last)
		}
		last, a, b, holder = g.Fence, b, a, waiter
	}
}

// A clock that is set ahead by more than a lease has left ends it: its holder learns that
// by its next renewal, and the next one has a greater fence.
func TestTheServersClockIsSetAheadOfALease(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it sets a server's clock")
	}
	t.Parallel()
	clock := timeshift.NewGo(t, 0)
	server := natstest.StartWith(t, clock.Start)
	a, b := start(t, "nats://"+server.Addr), start(t, "nats://"+server.Addr)
	c := mutex("job")
	c.TTL = 30 * time.Second
	first := gets(t, a, c)
	clock.Set(time.Minute)
	if g := gets(t, b, mutex("job")); g.Fence <= first.Fence {
		t.Errorf("fence %d after %d", g.Fence, first.Fence)
	}
	isLost(t, a, c)
}
