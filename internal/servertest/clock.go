package servertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
)

// swings are the times by which the tests set a clock ahead, back, and right.
var swings = []time.Duration{time.Minute, -time.Minute, 0}

// BelowSwing is a TTL that is shorter than a swing of the clock, and longer than a slow
// machine needs.
const BelowSwing = 50 * time.Second

// ClockEndsLeases sets the clock by which leases end. Ahead, it ends a lease early, and
// the next renewal notifies its holder. Back, leases last longer. Fences rise in either
// case.
func ClockEndsLeases(tb TB, one, two driver.Driver, set func(by time.Duration)) {
	tb.Helper()
	c := Mutex("job")
	c.TTL = BelowSwing
	last := Gets(tb, one, c).Fence
	for _, by := range swings {
		set(by)
		next := Mutex("job")
		next.TTL = BelowSwing
		if by <= 0 {
			Waits(tb, two, next)
			continue
		}
		g := Gets(tb, two, next)
		if g.Fence <= last {
			tb.Errorf("by %v: fence %d after %d", by, g.Fence, last)
		}
		IsLost(tb, one, c)
		last, c, one, two = g.Fence, next, two, one
	}
	Releases(tb, one, c)
	if g := Gets(tb, two, Mutex("job")); g.Fence <= last {
		tb.Errorf("fence %d after %d", g.Fence, last)
	}
}

// ClockEndsNothing sets a clock of the server that ends no lease of this TTL. The name
// has a holder and a waiter, who notice nothing, and new leases last as long as they
// should.
func ClockEndsNothing(tb TB, one, two driver.Driver, ttl time.Duration, set func(by time.Duration)) {
	tb.Helper()
	holder := Mutex("job")
	holder.TTL = ttl
	last := Gets(tb, one, holder).Fence
	for _, by := range swings {
		waiter, short := Queued("job"), Mutex("short")
		waiter.TTL, waiter.QueueTTL, short.TTL = ttl, ttl, 4*time.Second
		Waits(tb, two, waiter)
		set(by)
		Renews(tb, one, holder)
		Waits(tb, two, waiter)
		began := time.Now()
		Gets(tb, one, short)
		next := Mutex("short")
		untilFree(tb, two, next)
		if took := time.Since(began); took < short.TTL {
			tb.Errorf("by %v: a lease of %v ended after %v", by, short.TTL, took)
		}
		Releases(tb, two, next)
		Releases(tb, one, holder)
		g := Gets(tb, two, waiter)
		if g.Fence <= last {
			tb.Errorf("by %v: fence %d after %d", by, g.Fence, last)
		}
		last, one, two, holder = g.Fence, two, one, waiter
	}
}

// IsLost checks that the next renewal reports the lease as lost.
func IsLost(tb TB, d driver.Driver, c driver.Claim) {
	tb.Helper()
	err := answer(func() error {
		answers, err := d.Renew(context.Background(), []driver.LeaseRef{Lease(c)})
		return errors.Join(append(answers, err)...)
	})
	if !errors.Is(err, driver.ErrNoSuchLease) {
		tb.Errorf("Renew: %v; want ErrNoSuchLease", err)
	}
}

// untilFree repeats a claim until it is granted.
func untilFree(tb TB, d driver.Driver, c driver.Claim) (g driver.Grant) {
	tb.Helper()
	basictest.Until(tb, "Acquire", func() (err error) { g, err = d.Acquire(context.Background(), c); return err })
	return g
}
