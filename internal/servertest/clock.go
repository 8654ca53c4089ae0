package servertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
)

// clockOffsets are the offsets to which tests set a clock: ahead, back, and right again.
var clockOffsets = []time.Duration{time.Minute, -time.Minute, 0}

// BelowSwing is a TTL shorter than a swing, but long enough for a slow machine.
const BelowSwing = 50 * time.Second

// ClockEndsLeases sets the clock by which the server ends leases. If the clock is set
// ahead, a lease ends early, and the next renewal notifies its holder. If it is set back,
// leases last longer. Fences rise in both cases.
func ClockEndsLeases(tb TB, one, two driver.Driver, set func(by time.Duration)) {
	tb.Helper()
	c := Mutex("job")
	c.TTL = BelowSwing
	last := Gets(tb, one, c).Fence
	for _, by := range clockOffsets {
		set(by)
		next := Mutex("job")
		next.TTL = BelowSwing
		if by <= 0 {
			Waits(tb, two, next)
			continue
		}
		g := Gets(tb, two, next)
		if g.Fence <= last {
			tb.Errorf("clock off by %v: fence %d after %d", by, g.Fence, last)
		}
		IsLost(tb, one, c)
		last, c, one, two = g.Fence, next, two, one
	}
	Releases(tb, one, c)
	if g := Gets(tb, two, Mutex("job")); g.Fence <= last {
		tb.Errorf("fence %d after %d", g.Fence, last)
	}
}

// ClockEndsNothing sets a clock of the server that should not end leases of this TTL. The
// lease of a holder and the place of a waiter stay, and new leases last for their TTL.
func ClockEndsNothing(tb TB, one, two driver.Driver, ttl time.Duration, set func(by time.Duration)) {
	tb.Helper()
	holder := Mutex("job")
	holder.TTL = ttl
	last := Gets(tb, one, holder).Fence
	for _, by := range clockOffsets {
		waiter, short := Queued("job"), Mutex("short")
		waiter.TTL, waiter.QueueTTL, short.TTL = ttl, ttl, 4*time.Second
		Waits(tb, two, waiter)
		set(by)
		Renews(tb, one, holder)
		Waits(tb, two, waiter)
		began := time.Now()
		Gets(tb, one, short)
		next := Mutex("short")
		acquireWhenFree(tb, two, next)
		if took := time.Since(began); took < short.TTL {
			tb.Errorf("clock off by %v: a lease of %v ended after %v", by, short.TTL, took)
		}
		Releases(tb, two, next)
		Releases(tb, one, holder)
		g := Gets(tb, two, waiter)
		if g.Fence <= last {
			tb.Errorf("clock off by %v: fence %d after %d", by, g.Fence, last)
		}
		last, one, two, holder = g.Fence, two, one, waiter
	}
}

// IsLost checks that the next renewal reports the lease as lost.
func IsLost(tb TB, d driver.Driver, c driver.Claim) {
	tb.Helper()
	err := retryUnavailable(func() error {
		answers, err := d.Renew(context.Background(), []driver.LeaseRef{Lease(c)})
		return errors.Join(append(answers, err)...)
	})
	if !errors.Is(err, driver.ErrNoSuchLease) {
		tb.Errorf("Renew: %v; want ErrNoSuchLease", err)
	}
}

// acquireWhenFree repeats a claim until it is granted.
func acquireWhenFree(tb TB, d driver.Driver, c driver.Claim) (g driver.Grant) {
	tb.Helper()
	basictest.Until(tb, "Acquire", func() (err error) { g, err = d.Acquire(context.Background(), c); return err })
	return g
}
