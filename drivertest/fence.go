package drivertest

import (
	"sync"

	"github.com/pawl-go/pawl/driver"
)

func testFence(s *suite) {
	// wantRise requires that g has a greater fence than all earlier grants. last is the
	// last fence of their ranges.
	wantRise := func(k *kit, last *uint64, g driver.Grant) {
		k.Helper()
		if g.Fence <= *last {
			k.Fatalf("VIOLATION: fence %d after %d; want it to rise strictly", g.Fence, *last)
		}
		*last = g.Fence + uint64(g.Fences) - 1
	}

	s.test("RisesAcrossReleases", func(k *kit) {
		var last uint64
		for i := range 10 {
			c := k.mutex()
			wantRise(k, &last, []*client{k.a, k.b}[i%2].wantGranted(c))
			k.a.mustRelease(c)
		}
	})

	// A range reaches ahead of the clock. Otherwise the clock would hide a lost fence.
	s.test("RisesAcrossForce", func(k *kit) {
		var last uint64
		for i := range 10 {
			wantRise(k, &last, []*client{k.a, k.b}[i%2].wantGranted(k.mutex(force, fences(driver.MaxFences))))
		}
	})

	if s.canBreak {
		s.test("RisesAcrossBreaks", func(k *kit) {
			var last uint64
			for range 10 {
				wantRise(k, &last, k.a.wantGranted(k.mutex(fences(driver.MaxFences))))
				k.b.mustBreak(last, 0, driver.Owner{Client: "op"})
			}
		})
	}

	s.test("RisesAmongHoldersSideBySide", func(k *kit) {
		var last uint64
		for i := range 10 {
			wantRise(k, &last, []*client{k.a, k.b}[i%2].wantGranted(k.permits(1, 10)))
		}
	})

	s.test("RisesAlongTheQueue", func(k *kit) {
		holder := k.mutex(fences(3))
		var last uint64
		wantRise(k, &last, k.a.wantGranted(holder))
		for i := range 5 {
			next := k.mutex(queue(long), fences(i))
			k.b.wantPlace(next, 1)
			k.a.mustRelease(holder)
			wantRise(k, &last, k.b.wantGranted(next))
			holder = next
		}
	})

	s.test("RisesAfterTheNameWasIdle", func(k *kit) {
		// The backend may forget an unused name, but the next fence must still be
		// greater.
		c := k.mutex(fences(100))
		var last uint64
		wantRise(k, &last, k.a.wantGranted(c))
		k.a.mustRelease(c)
		idle := k.unit
		if k.suite.Clock != nil {
			idle = 400 * 24 * long
		}
		k.advancePast(idle)
		_, _ = k.b.Inspect(k.ctx, k.name)
		wantRise(k, &last, k.b.wantGranted(k.mutex()))
	})

	s.test("RisesAfterARangeThatWasReleasedAtOnce", func(k *kit) {
		// The clock has not passed the range yet, so the backend must not forget the
		// name.
		var last uint64
		for range 3 {
			c := k.mutex(fences(driver.MaxFences))
			wantRise(k, &last, k.a.wantGranted(c))
			k.a.mustRelease(c)
			if e := k.b.entry(k.name); k.suite.Clock != nil && e.Fence < last {
				k.Fatalf("Entry.Fence = %d, want %d, the last of the range", e.Fence, last)
			}
		}
	})

	s.testExact("IsTheTimeInMicrosecondsAtLeast", func(k *kit) {
		for range 3 {
			c := k.mutex()
			if g := k.a.wantGranted(c); g.Fence < uint64(k.suite.Clock.Now().UnixMicro()) {
				k.Fatalf("fence %d at %d", g.Fence, k.suite.Clock.Now().UnixMicro())
			}
			k.a.mustRelease(c)
			k.advancePast(k.unit)
		}
	})

	s.testExact("RisesAcrossAnExpiryBeforeTheEndOfTheRange", func(k *kit) {
		// A range may reach into the future: 65 536 fences are 66 ms, and a lease may be
		// shorter.
		var last uint64
		short := max(k.a.Properties().MinTTL, driver.MinTTL)
		for range 3 {
			wantRise(k, &last, k.a.wantGranted(k.mutex(ttl(short), fences(driver.MaxFences))))
			k.advancePast(short)
			k.b.wantHoldersWaiters(0, 0)
		}
	})

	s.testExact("RisesWhenTheClockRunsBack", func(k *kit) {
		defer k.advancePast(long)
		var last uint64
		wantRise(k, &last, k.a.wantGranted(k.permits(1, 9, ttl(3*long))))
		k.advancePast(-long)
		wantRise(k, &last, k.b.wantGranted(k.permits(1, 9, ttl(3*long))))
		wantRise(k, &last, k.b.wantGranted(k.mutex(force)))
	})

	s.test("RisesWhenAllClientsWereClosed", func(k *kit) {
		var last uint64
		for range 3 {
			wantRise(k, &last, k.a.wantGranted(k.mutex(force, fences(9))))
			k.mustClose(k.a)
			k.mustClose(k.b)
			k.a, k.b = k.open(), k.open()
		}
	})

	if s.Wipe != nil {
		s.test("RisesAcrossLostData", func(k *kit) {
			var last uint64
			for range 3 {
				wantRise(k, &last, k.a.wantGranted(k.mutex(fences(5))))
				k.advance(clockStep * 10) // a server needs longer than that to restart
				k.suite.Wipe(k.T)
				k.a, k.b = k.open(), k.open()
				k.a.wantHoldersWaiters(0, 0)
			}
		})
	}

	s.test("ARangeIsReservedForAnExclusiveClaim", func(k *kit) {
		var last uint64
		for _, n := range []int{0, 1, 8, 1000, driver.MaxFences, 1} {
			c := k.mutex(fences(n))
			g := k.a.wantGranted(c)
			if g.Fences > max(n, 1) {
				k.Fatalf("a range of %d for %d", g.Fences, n)
			}
			wantRise(k, &last, g)
			if e := k.b.entry(k.name); e.Fence != last {
				k.Fatalf("Entry.Fence = %d, want %d, the last of the range", e.Fence, last)
			}
			k.a.mustRelease(c)
		}
	})

	s.test("ARangeIsForExclusiveClaimsOnly", func(k *kit) {
		for _, c := range []driver.Claim{k.reader(fences(8)), k.permits(1, 3, fences(8)), k.permits(3, 100, fences(8))} {
			if g := k.a.wantGranted(c); g.Fences != 1 {
				k.Fatalf("%d of %d got a range of %d, want 1", c.Weight, c.Limit, g.Fences)
			}
		}
	})

	s.test("ConcurrentGrantsHaveDistinctFences", func(k *kit) {
		const n = 32
		fences := make(chan uint64, n)
		claims := make([]driver.Claim, n)
		for i := range claims {
			claims[i] = k.permits(1, n)
		}
		var all sync.WaitGroup
		for i, c := range claims {
			all.Go(func() {
				g, err := []*client{k.a, k.b}[i%2].Acquire(k.ctx, c)
				if err != nil {
					k.Errorf("Acquire: %v", err)
				}
				fences <- g.Fence
			})
		}
		all.Wait()
		close(fences)
		granted := map[uint64]bool{}
		for f := range fences {
			if granted[f] {
				k.Fatalf("VIOLATION: the fence %d was granted twice", f)
			}
			granted[f] = true
		}
	})
}
