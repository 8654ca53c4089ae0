package drivertest

import (
	"errors"

	"github.com/pawl-go/pawl/driver"
)

// testRaise is for drivers that can be nodes of a quorum.
func testRaise(s *suite) {
	s.test("MakesTheFenceAtLeastWhatIsAskedFor", func(k *kit) {
		c := k.mutex()
		g := k.a.wantGranted(c)
		if got := k.a.mustRaise(c, g.Fence+1000); got != g.Fence+1000 {
			k.Errorf("raised to %d, want %d", got, g.Fence+1000)
		}
		k.b.wantFences(g.Fence + 1000)
		if e := k.b.entry(k.name); e.Fence != g.Fence+1000 {
			k.Errorf("the last fence is %d, want %d", e.Fence, g.Fence+1000)
		}
		if again := k.b.wantGranted(c); again.Fence != g.Fence+1000 {
			k.Errorf("the claim repeated got the fence %d, want the raised one, %d", again.Fence, g.Fence+1000)
		}
	})

	s.test("NeverLowersAFence", func(k *kit) {
		c := k.mutex()
		g := k.a.wantGranted(c)
		for _, f := range []uint64{1, g.Fence - 1, g.Fence} {
			if got := k.b.mustRaise(c, f); got != g.Fence {
				k.Errorf("RaiseFence to %d returns %d; the fence was %d", f, got, g.Fence)
			}
		}
		k.b.wantFences(g.Fence)
	})

	s.test("TheNextGrantIsAboveIt", func(k *kit) {
		c := k.mutex()
		raised := k.a.mustRaise(c, k.a.wantGranted(c).Fence+1_000_000_000) // a quarter of an hour ahead of the clock
		k.a.mustRelease(c)
		if next := k.b.wantGranted(k.mutex()); next.Fence <= raised {
			k.Errorf("fence %d after %d", next.Fence, raised)
		}
	})

	s.test("MovesAWholeRange", func(k *kit) {
		c := k.mutex(fences(10))
		g := k.a.wantGranted(c)
		raised := k.a.mustRaise(c, g.Fence+5)
		again := k.a.wantGranted(c)
		if again.Fence != raised || again.Fences != g.Fences {
			k.Errorf("%+v after raising %+v to %d", again, g, raised)
		}
		k.a.mustRelease(c)
		if next := k.b.wantGranted(k.mutex()); next.Fence < raised+uint64(g.Fences) {
			k.Errorf("fence %d, inside a range of %d from %d", next.Fence, g.Fences, raised)
		}
	})

	s.test("TwoLeasesNeverHaveTheSameFence", func(k *kit) {
		one, two := k.permits(1, 3), k.permits(1, 3)
		f1, f2 := k.a.wantGranted(one).Fence, k.b.wantGranted(two).Fence
		raised := k.b.mustRaise(one, f2) // another lease has this fence
		if raised <= f2 {
			k.Fatalf("raised from %d to %d beside a lease with %d", f1, raised, f2)
		}
		k.a.wantFences(f2, raised)
		k.a.mustRenew(one)
		k.b.mustRenew(two)
		if third := k.a.wantGranted(k.permits(1, 3)); third.Fence <= raised {
			k.Errorf("fence %d after %d", third.Fence, raised)
		}
	})

	s.test("ALeaseThatCouldNotHaveComeLastStaysAsItIs", func(k *kit) {
		one, two, three := k.permits(1, 2), k.permits(1, 3), k.permits(1, 3)
		f1, f2, f3 := k.a.wantGranted(one).Fence, k.b.wantGranted(two).Fence, k.a.wantGranted(three).Fence
		_, err := k.a.Driver.(driver.FenceRaiser).RaiseFence(k.ctx, lease(one), f3+1)
		if !errors.Is(err, driver.ErrHeld) {
			k.Fatalf("RaiseFence: %v; want ErrHeld, because two leases were granted later, and its limit is 2", err)
		}
		k.b.wantFences(f1, f2, f3)
		k.b.mustRenew(one)
		k.b.mustRaise(two, f3+1) // its limit is 3
	})

	s.test("NeitherCreatesNorExtends", func(k *kit) {
		c, waiter := k.mutex(ttl(2*k.unit)), k.mutex(queue(long))
		k.wantNothingToRaise(c) // never held
		g := k.a.wantGranted(c)
		k.b.wantPlace(waiter, 1)
		k.wantNothingToRaise(waiter)
		k.advance(k.unit)
		k.a.mustRaise(c, g.Fence+9)
		k.advancePast(k.unit)
		k.wantNothingToRaise(c)
		k.b.wantGranted(waiter)
		k.b.mustRelease(waiter)
		k.wantNothingToRaise(waiter)
		k.b.wantHoldersWaiters(0, 0)
	})

	s.test("AnInvalidFenceIsRefused", func(k *kit) {
		c := k.mutex()
		g := k.a.wantGranted(c)
		for _, f := range []uint64{0, driver.MaxFence + 1, 1<<64 - 1} {
			_, err := k.a.Driver.(driver.FenceRaiser).RaiseFence(k.ctx, lease(c), f)
			k.wantInvalid("RaiseFence", err)
		}
		k.b.wantFences(g.Fence)
	})

	s.testExact("MinFenceCountsOnlyNearTheClock", func(k *kit) {
		now, most := uint64(k.suite.Clock.Now().UnixMicro()), uint64(driver.MaxLead.Microseconds())
		for i, x := range []struct{ minFence, want uint64 }{
			{1, now}, {now, now}, {now + 1, now + 1}, {now + most, now + most}, {now + most + 1, now + most}, {1<<64 - 1, now + most},
		} {
			c := k.mutex(named(k.nthName(i)))
			c.MinFence = x.minFence
			if g := k.a.wantGranted(c); g.Fence != x.want {
				k.Errorf("with the MinFence %d at %d the fence is %d, want %d", x.minFence, now, g.Fence, x.want)
			}
		}
	})
}

// mustRaise raises the fence of a claim, and returns the new fence.
func (d *client) mustRaise(c driver.Claim, fence uint64) uint64 {
	d.k.Helper()
	got, err := d.Driver.(driver.FenceRaiser).RaiseFence(d.k.ctx, lease(c), fence)
	if err != nil {
		d.k.Fatalf("RaiseFence: %v", err)
	}
	return got
}

// wantNothingToRaise requires that the claim has no lease.
func (k *kit) wantNothingToRaise(c driver.Claim) {
	k.Helper()
	if _, err := k.a.Driver.(driver.FenceRaiser).RaiseFence(k.ctx, lease(c), 1); !errors.Is(err, driver.ErrNoSuchLease) {
		k.Fatalf("RaiseFence: %v; want ErrNoSuchLease", err)
	}
}
