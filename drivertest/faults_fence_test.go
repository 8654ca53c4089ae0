package drivertest_test

import (
	"context"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

var fenceFaults = []fault{{
	name: "a release resets the fence", mustFail: []string{"Fence/RisesAcrossReleases", "Fence/RisesAfterARangeThatWasReleasedAtOnce"},
	driver: replaceRelease(func(ctx context.Context, d *faulty, l driver.LeaseRef) error {
		err := d.Release(ctx, l)
		d.resetFence(l.Name)
		return err
	}),
}, {
	name: "an expiry resets the fence", mustFail: []string{"Fence/RisesAcrossAnExpiryBeforeTheEndOfTheRange"},
	step: beforeStep(func(e *locktable.Entry, now locktable.Instant) {
		for _, h := range e.Holders {
			if h.Expires <= now {
				e.Fence = 0
			}
		}
	}),
}, {
	name: "a break resets the fence", mustFail: []string{"Fence/RisesAcrossBreaks"},
	driver: beforeBreak(func(d *faulty, name string, _ *uint64) {
		d.edit(name, func(e *locktable.Entry, _ locktable.Instant) { e.Fence = 0 })
	}),
}, {
	name: "force keeps the fence", mustFail: []string{"Fence/RisesAcrossForce", "Force/TakesTheNameInOneStep"},
	driver: changeClaim(func(d *faulty, c *driver.Claim) {
		if c.Force {
			d.edit(c.Name, func(e *locktable.Entry, _ locktable.Instant) { e.Fence = 0 })
		}
	}),
}, {
	name:     "two holders get the same fence",
	mustFail: []string{"Fence/RisesAmongHoldersSideBySide", "Fence/ConcurrentGrantsHaveDistinctFences", "Acquire/EachAcquisitionHasAnIdentityOfItsOwn"},
	driver: changeGrant(func(d *faulty, c driver.Claim, g *driver.Grant) {
		if hs := d.stored(c.Name).Holders; len(hs) > 1 && g.Fence == hs[1].Fence {
			g.Fence = hs[0].Fence
		}
	}),
}, {
	name: "a promoted waiter gets the fence before", mustFail: []string{"Fence/RisesAlongTheQueue", "Queue/ServesInTheOrderOfArrival"},
	step: changePromotedLease(func(h *locktable.Holder, _ locktable.Instant) { h.Fence-- }),
}, {
	name: "the fence is the time and nothing else", mustFail: []string{"Fence/RisesWhenTheClockRunsBack", "Fence/RisesAcrossReleases"},
	step: beforeStep(func(e *locktable.Entry, _ locktable.Instant) { e.Fence = 0 }),
}, {
	name: "the fence is a counter that is lost with the data", mustFail: []string{"Fence/RisesAcrossLostData", "Fence/IsTheTimeInMicrosecondsAtLeast"},
	step: func(s *server, _ *locktable.Entry, now locktable.Instant, f apply) {
		f(now - locktable.At(s.wipedAt)) // all instants move by the same amount, so nothing else is wrong
	},
}, {
	name: "a range is not reserved", mustFail: []string{"Fence/ARangeIsReservedForAnExclusiveClaim", "Fence/RisesAfterARangeThatWasReleasedAtOnce"},
	step: afterStep(func(e *locktable.Entry, _ locktable.Value) {
		if n := len(e.Holders); n > 0 && e.Holders[n-1].Fences > 1 {
			e.Fence = e.Holders[n-1].Fence
		}
	}),
}, {
	name: "readers and permits get ranges", mustFail: []string{"Fence/ARangeIsForExclusiveClaimsOnly"},
	driver: changeGrant(func(_ *faulty, c driver.Claim, g *driver.Grant) { g.Fences = max(g.Fences, c.Fences) }),
}, {
	name: "a range is forgotten by a repeat", mustFail: []string{"Acquire/RepeatedAfterALostReplyAnswersWithTheSameGrant"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		again := d.held(c.Name, c.Token) != nil
		g, err := d.Acquire(ctx, c)
		if err == nil && again {
			g.Fences = 1
		}
		return g, err
	}),
}}

// resetFence forgets the last fence of a name without holders.
func (d *faulty) resetFence(name string) {
	d.edit(name, func(e *locktable.Entry, _ locktable.Instant) {
		if len(e.Holders) == 0 {
			e.Fence = 0
		}
	})
}
