package drivertest_test

import (
	"context"
	"slices"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// replaceRelease returns a fault's driver with another Release.
func replaceRelease(release func(ctx context.Context, d *faulty, l driver.LeaseRef) error) func(*faulty) driver.Driver {
	return func(d *faulty) driver.Driver { return releaser{d, release} }
}

// changeRelease returns a fault's driver that changes the lease of each release.
func changeRelease(change func(d *faulty, l *driver.LeaseRef)) func(*faulty) driver.Driver {
	return replaceRelease(func(ctx context.Context, d *faulty, l driver.LeaseRef) error {
		if driver.ValidateValue(l.Value) == nil && driver.ValidateDelay("", l.MinHold) == nil {
			change(d, &l)
		}
		return d.Release(ctx, l)
	})
}

// changeKeptLease returns a fault's driver that changes what its minimum hold keeps of a
// released lease.
func changeKeptLease(change func(kept, was *locktable.Holder)) func(*faulty) driver.Driver {
	return replaceRelease(func(ctx context.Context, d *faulty, l driver.LeaseRef) error {
		was := d.held(l.Name, l.Token)
		err := d.Release(ctx, l)
		if was != nil {
			d.edit(l.Name, func(e *locktable.Entry, _ locktable.Instant) {
				for i := range e.Holders {
					if e.Holders[i].Fence == was.Fence {
						change(&e.Holders[i], was)
					}
				}
			})
		}
		return err
	})
}

var releaseFaults = []fault{{
	name:     "a release frees by name",
	mustFail: []string{"Release/StaleReleaseDoesNotFreeTheNewHolder", "Release/ASecondReleaseSaysNotHeldAndChangesNothing", "Force/TheOldHolderCanTouchNothing"},
	driver: changeRelease(func(d *faulty, l *driver.LeaseRef) {
		if hs := d.stored(l.Name).Holders; len(hs) > 0 {
			l.Token = hs[0].Token
		}
	}),
}, {
	name: "a release is only noted", mustFail: []string{"Release/ASecondReleaseSaysNotHeldAndChangesNothing", "Client/AReleaseLetsTheNextInWithAHigherFence", "Client/CloseReleasesLeasesAndLeavesQueues"},
	driver: replaceRelease(func(ctx context.Context, d *faulty, l driver.LeaseRef) error {
		if d.held(l.Name, l.Token) != nil {
			return ctx.Err()
		}
		return d.Release(ctx, l)
	}),
}, {
	name: "a release frees all the permits", mustFail: []string{"Release/FreesItsOwnPermitOnly", "MinHold/IsForOnePermitOnly"},
	driver: replaceRelease(func(ctx context.Context, d *faulty, l driver.LeaseRef) error {
		err := d.Release(ctx, l)
		if err == nil {
			d.edit(l.Name, func(e *locktable.Entry, _ locktable.Instant) { e.Holders = nil })
		}
		return err
	}),
}, {
	name:     "a second release says that it was held",
	mustFail: []string{"Release/ASecondReleaseSaysNotHeldAndChangesNothing", "Release/OfAnExpiredLeaseSaysNotHeld", "Release/OfAnUnknownNameSaysNotHeldAndCreatesNothing"},
	driver: replaceRelease(func(ctx context.Context, d *faulty, l driver.LeaseRef) error {
		if err := d.Release(ctx, l); err != driver.ErrNoSuchLease {
			return err
		}
		return nil
	}),
}, {
	name: "a waiter cannot leave", mustFail: []string{"Release/LeavesTheQueue", "Release/CancellingAHundredWaitersLeavesNothing", "Client/ACancelledWaitLeavesNothing"},
	driver: replaceRelease(func(ctx context.Context, d *faulty, l driver.LeaseRef) error {
		if slices.ContainsFunc(d.stored(l.Name).Queue, func(w locktable.Waiter) bool { return w.Token == l.Token }) {
			return ctx.Err()
		}
		return d.Release(ctx, l)
	}),
}, {
	name: "a release does not pass the name on", mustFail: []string{"Release/PassesTheNameToTheHeadOfTheQueueAtOnce", "Signals/APromotedWaiterGetsASignalWithItsFence"},
	driver: replaceRelease(func(ctx context.Context, d *faulty, l driver.LeaseRef) (err error) {
		if d.held(l.Name, l.Token) == nil {
			return d.Release(ctx, l)
		}
		d.withoutQueue(l.Name, func() { err = d.Release(ctx, l) })
		return err
	}),
}, {
	name: "a cancelled waiter loses the turn of the next", mustFail: []string{"Release/PassesOnAGrantThatNeverReachedItsWaiter"},
	driver: replaceRelease(func(ctx context.Context, d *faulty, l driver.LeaseRef) error {
		// Treats a grant that its waiter has not asked for yet as a place in the queue.
		if h := d.held(l.Name, l.Token); h != nil && h.Inbox == d.table.inbox && len(d.stored(l.Name).Queue) > 0 {
			return ctx.Err()
		}
		return d.Release(ctx, l)
	}),
}, {
	name: "the zero token releases what is kept", mustFail: []string{"Release/TheZeroTokenReleasesNothing"},
	driver: replaceRelease(func(ctx context.Context, d *faulty, l driver.LeaseRef) error {
		if l.Token.IsZero() && d.held(l.Name, l.Token) != nil {
			return nil
		}
		return d.Release(ctx, l)
	}),
}, {
	name: "the minimum hold is ignored", mustFail: []string{"MinHold/KeepsTheNameHeldAfterARelease", "MinHold/IsShownInTheEntry"},
	driver: changeRelease(func(_ *faulty, l *driver.LeaseRef) { l.MinHold = 0 }),
}, {
	name: "the minimum hold counts from the release", mustFail: []string{"MinHold/CountsFromTheGrant", "MinHold/HasNoEffectAfterALongerHold"},
	driver: changeRelease(func(d *faulty, l *driver.LeaseRef) {
		if h := d.held(l.Name, l.Token); h != nil && l.MinHold > 0 {
			l.MinHold += h.Since.Until(locktable.At(d.table.server.now()))
		}
	}),
}, {
	name: "the minimum hold is cut off at the TTL", mustFail: []string{"MinHold/MayOutlastTheTTL"},
	driver: changeRelease(func(d *faulty, l *driver.LeaseRef) {
		if h := d.held(l.Name, l.Token); h != nil && l.MinHold > 0 {
			l.MinHold = min(l.MinHold, h.Since.Until(h.Expires))
		}
	}),
}, {
	name: "what is kept still has its token", mustFail: []string{"MinHold/TheTokenHoldsNothingAnyMore"},
	driver: changeKeptLease(func(kept, was *locktable.Holder) { kept.Token = was.Token }),
}, {
	name: "a lock-delay follows what was kept", mustFail: []string{"MinHold/EndsWithoutALockDelay"},
	driver: changeKeptLease(func(kept, was *locktable.Holder) { kept.LockDelay = was.LockDelay }),
}, {
	name: "a lock-delay follows a release", mustFail: []string{"LockDelay/DoesNotFollowARelease"},
	driver: replaceRelease(func(ctx context.Context, d *faulty, l driver.LeaseRef) error {
		h := d.held(l.Name, l.Token)
		err := d.Release(ctx, l)
		if h != nil && h.LockDelay > 0 {
			d.edit(l.Name, func(e *locktable.Entry, now locktable.Instant) { e.Closed = now.Add(h.LockDelay) })
		}
		return err
	}),
}}
