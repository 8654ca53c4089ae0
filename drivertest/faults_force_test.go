package drivertest_test

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// beforeBreak returns a fault's driver that calls change before each break; it may change
// the fence.
func beforeBreak(change func(d *faulty, name string, fence *uint64)) func(*faulty) driver.Driver {
	return func(d *faulty) driver.Driver {
		return breaker{d, func(ctx context.Context, d *faulty, name string, fence uint64, delay time.Duration, by driver.Owner) error {
			if driver.ValidateName(name) == nil && driver.ValidateDelay("", delay) == nil && ctx.Err() == nil {
				change(d, name, &fence)
			}
			return d.Break(ctx, name, fence, delay, by)
		}}
	}
}

// changeForcedStep returns a fault's driver that runs step around each forced claim.
func changeForcedStep(step func(e *locktable.Entry, acquire func())) func(*faulty) driver.Driver {
	return replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (g driver.Grant, err error) {
		if c.Validate() != nil || ctx.Err() != nil || !c.Force || d.held(c.Name, c.Token) != nil {
			return d.Acquire(ctx, c)
		}
		e := d.stored(c.Name)
		step(e, func() { g, err = d.Acquire(ctx, c) })
		d.edit(c.Name, func(stored *locktable.Entry, _ locktable.Instant) {
			if e.Changed {
				stored.Holders = append(e.Holders, stored.Holders...)
			}
			if e.Broken == nil {
				stored.Broken = nil
			}
		})
		return g, err
	})
}

var forceFaults = []fault{{
	name: "force breaks only the first holder", mustFail: []string{"Force/BreaksEveryReaderAndPermit"},
	driver: changeForcedStep(func(e *locktable.Entry, acquire func()) {
		acquire()
		e.Broken = []locktable.Broken{{}}
		if e.Changed = len(e.Holders) > 1; e.Changed {
			e.Holders = e.Holders[1:]
		}
	}),
}, {
	name: "force waits for its turn", mustFail: []string{"Force/TakesTheNameInOneStep", "Force/PassesAllWaitersAndLeavesThemTheirPlaces"},
	driver: changeClaim(func(_ *faulty, c *driver.Claim) { c.Force = false }),
}, {
	name: "force empties the queue", mustFail: []string{"Force/PassesAllWaitersAndLeavesThemTheirPlaces"},
	driver: changeClaim(func(d *faulty, c *driver.Claim) {
		if c.Force {
			d.edit(c.Name, func(e *locktable.Entry, _ locktable.Instant) { e.Queue = nil })
		}
	}),
}, {
	name: "force repeated breaks itself", mustFail: []string{"Force/RepeatedAfterALostReplyAnswersWithTheSameGrant"},
	driver: changeClaim(func(d *faulty, c *driver.Claim) {
		if c.Force {
			_ = d.Release(context.Background(), driver.LeaseRef{Name: c.Name, Token: c.Token})
		}
	}),
}, {
	name: "force does not name the new holder", mustFail: []string{"Force/NamesTheNewHolderToTheOldOne"},
	driver: changeForcedStep(func(e *locktable.Entry, acquire func()) {
		acquire()
		e.Changed, e.Broken = false, nil
	}),
}, {
	name: "force leaves the name closed", mustFail: []string{"Force/TakesANameThatIsClosed"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		closed := d.stored(c.Name).Closed
		g, err := d.Acquire(ctx, c)
		if c.Force && err == nil {
			d.edit(c.Name, func(e *locktable.Entry, _ locktable.Instant) { e.Closed = closed })
		}
		return g, err
	}),
}, {
	name: "a break ignores the fence", mustFail: []string{"Break/OfAFenceThatNoHolderHasChangesNothing", "Break/OfAnOldFenceLeavesTheNewHolder"},
	driver: beforeBreak(func(d *faulty, name string, fence *uint64) {
		if hs := d.stored(name).Holders; len(hs) > 0 {
			*fence = hs[0].Fence
		}
	}),
}, {
	name: "a break knows the first fence of a range only", mustFail: []string{"Break/MatchesEveryFenceOfARange"},
	driver: beforeBreak(func(d *faulty, name string, fence *uint64) {
		for _, h := range d.stored(name).Holders {
			if *fence > h.Fence {
				*fence = 0
			}
		}
	}),
}, {
	name: "a break matches one fence too many", mustFail: []string{"Break/OfAFenceThatNoHolderHasChangesNothing", "Break/MatchesEveryFenceOfARange"},
	driver: beforeBreak(func(d *faulty, name string, fence *uint64) {
		for _, h := range d.stored(name).Holders {
			if *fence == h.Fence+uint64(h.Fences) {
				*fence = h.Fence
			}
		}
	}),
}, {
	name: "a break ends every lease", mustFail: []string{"Break/OfOneHolderLeavesTheOthers"},
	driver: beforeBreak(func(d *faulty, name string, fence *uint64) {
		d.edit(name, func(e *locktable.Entry, _ locktable.Instant) {
			for _, h := range e.Holders {
				if h.Fence == *fence {
					e.Holders = []locktable.Holder{h}
				}
			}
		})
	}),
}, {
	name: "a break does not close the name", mustFail: []string{"Break/KeepsTheNameClosedForTheDelay", "Break/OpensAtTheVeryInstant", "List/YieldsAClosedName"},
	driver: afterBreak(func(e *locktable.Entry, _ driver.Owner) { e.Closed = 0 }),
}, {
	name: "a break does not name the breaker", mustFail: []string{"Break/TakesTheLeaseAndNamesTheBreakerToItsHolder"},
	driver: afterBreak(func(e *locktable.Entry, _ driver.Owner) { e.Broken = nil }),
}, {
	name: "a lost lease's error does not name the breaker", mustFail: []string{"ClientLoss/ABreakReachesTheHolderAndLetsTheNextIn", "ClientLoss/AForcedGrantReachesTheOldHolder"},
	step: afterStep(func(e *locktable.Entry, _ locktable.Value) {
		e.Broken = nil // in the step itself, because a holder that gets its signal renews at once
	}),
}, {
	name: "only the first answer after a break names the breaker", mustFail: []string{"Break/TakesTheLeaseAndNamesTheBreakerToItsHolder"},
	driver: replaceRenew(func(ctx context.Context, d *faulty, leases []driver.LeaseRef) ([]error, error) {
		answers, err := d.Renew(ctx, leases)
		for _, l := range leases {
			if err == nil {
				d.edit(l.Name, func(e *locktable.Entry, _ locktable.Instant) { e.Broken = nil })
			}
		}
		return answers, err
	}),
}, {
	name: "a later break opens the name", mustFail: []string{"Break/ALaterBreakNeverOpensTheNameEarlier"},
	driver: beforeBreak(func(d *faulty, name string, _ *uint64) {
		d.edit(name, func(e *locktable.Entry, _ locktable.Instant) { e.Closed = 0 })
	}),
}, {
	name: "a broken holder's release opens the name", mustFail: []string{"Break/TheBrokenHoldersLateReleaseDoesNotOpenTheName"},
	driver: replaceRelease(func(ctx context.Context, d *faulty, l driver.LeaseRef) error {
		err := d.Release(ctx, l)
		if ctx.Err() == nil && err != nil && driver.ValidateName(l.Name) == nil {
			d.edit(l.Name, func(e *locktable.Entry, _ locktable.Instant) { e.Closed = 0 })
		}
		return err
	}),
}}

// afterBreak returns a fault's driver that changes the entry after each break.
func afterBreak(change func(e *locktable.Entry, by driver.Owner)) func(*faulty) driver.Driver {
	return func(d *faulty) driver.Driver {
		return breaker{d, func(ctx context.Context, d *faulty, name string, fence uint64, delay time.Duration, by driver.Owner) error {
			err := d.Break(ctx, name, fence, delay, by)
			if err == nil {
				d.edit(name, func(e *locktable.Entry, _ locktable.Instant) { change(e, by) })
			}
			return err
		}}
	}
}
