package drivertest_test

import (
	"bytes"
	"context"
	"slices"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// forceValue stores a value under the name's last fence, without a lease.
func forceValue(d *faulty, name string, value []byte) {
	d.edit(name, func(e *locktable.Entry, now locktable.Instant) {
		if value != nil && len(value) <= driver.MaxValue && e.Fence > 0 {
			e.Value = locktable.Value{Bytes: bytes.Clone(value), Fence: e.Fence, At: now}
		}
	})
}

// onValueNotBelow returns a fault's driver that passes claims refused for the value to f.
func onValueNotBelow(f func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error)) func(*faulty) driver.Driver {
	return replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		e := d.stored(c.Name)
		if c.Validate() != nil || ctx.Err() != nil || c.ValueBelow == nil || e.Value.Bytes == nil ||
			bytes.Compare(e.Value.Bytes, c.ValueBelow) < 0 || d.held(c.Name, c.Token) != nil {
			return d.Acquire(ctx, c)
		}
		return f(ctx, d, c)
	})
}

var valueFaults = []fault{{
	name: "of a large entry the end is cut off", mustFail: []string{"Basics/ALargeEntryIsKeptWhole"},
	step: afterStep(func(e *locktable.Entry, _ locktable.Value) {
		for i, size := 0, 0; i < len(e.Queue); i++ {
			for key, label := range e.Queue[i].Owner.Labels {
				size += len(key) + len(label)
			}
			if size > 32<<10 {
				e.Queue = e.Queue[:i]
			}
		}
	}),
}, {
	name: "of many labels some are lost", mustFail: []string{"Basics/ALargeEntryIsKeptWhole"},
	step: afterStep(func(e *locktable.Entry, _ locktable.Value) {
		for i := range e.Holders {
			if l := e.Holders[i].Owner.Labels; len(l) > 8 {
				e.Holders[i].Owner.Labels = map[string]string{"of": "many"}
			}
		}
	}),
}, {
	name:     "a grant writes no value",
	mustFail: []string{"Value/AGrantARenewalAndAReleaseWriteIt", "Value/AForceWritesIt", "Value/AWaiterWritesWhenItIsItsTurn", "Random/OperationsAreAnsweredAsByMemlock"},
	driver:   changeClaim(func(_ *faulty, c *driver.Claim) { c.Value = nil }),
}, {
	name: "a renewal writes no value", mustFail: []string{"Value/AGrantARenewalAndAReleaseWriteIt", "Value/EachNameHasItsOwn"},
	driver: changeRenewal(func(_ *faulty, l *driver.LeaseRef) { l.Value = nil }),
}, {
	name: "a release writes no value", mustFail: []string{"Value/AGrantARenewalAndAReleaseWriteIt", "Value/AReleaseWithAMinimumHoldWritesIt"},
	driver: changeRelease(func(_ *faulty, l *driver.LeaseRef) { l.Value = nil }),
}, {
	name: "no value is an empty one", mustFail: []string{"Value/AClaimWithoutAValueKeepsTheOldOne"},
	driver: changeRenewal(func(_ *faulty, l *driver.LeaseRef) {
		if l.Value == nil {
			l.Value = []byte{}
		}
	}),
}, {
	name: "an empty value is none", mustFail: []string{"Value/AnEmptyValueIsNotNone"},
	step: afterStep(func(e *locktable.Entry, was locktable.Value) {
		if e.Value.Bytes != nil && len(e.Value.Bytes) == 0 {
			e.Value = was
		}
	}),
}, {
	name: "a value ends at a zero", mustFail: []string{"Value/AnyBytesAreKept"},
	step: afterStep(func(e *locktable.Entry, _ locktable.Value) { e.Value.Bytes, _, _ = bytes.Cut(e.Value.Bytes, []byte{0}) }),
}, {
	name: "a value has 512 bytes at most", mustFail: []string{"Value/AnyBytesAreKept"},
	step: afterStep(func(e *locktable.Entry, _ locktable.Value) {
		e.Value.Bytes = e.Value.Bytes[:min(len(e.Value.Bytes), 512)]
	}),
}, {
	name: "a value has the fence of the last grant", mustFail: []string{"Value/AClaimWithoutAValueKeepsTheOldOne", "Value/TheLastWriterOfSeveralHoldersWins"},
	step: afterStep(func(e *locktable.Entry, _ locktable.Value) {
		if e.Value.Bytes != nil {
			e.Value.Fence = e.Fence
		}
	}),
}, {
	name: "a value goes with its lease", mustFail: []string{"Value/ItOutlivesItsLease", "Value/AGrantARenewalAndAReleaseWriteIt"},
	step: afterStep(func(e *locktable.Entry, _ locktable.Value) {
		if len(e.Holders) == 0 {
			e.Value = locktable.Value{}
		}
	}),
}, {
	name: "a repeat writes its value", mustFail: []string{"Value/ARepeatWritesNothing", "Value/ARepeatOfAHolderIsAGrant"},
	driver: changeGrant(func(d *faulty, c driver.Claim, _ *driver.Grant) { forceValue(d, c.Name, c.Value) }),
}, {
	name: "a claim that is refused writes its value", mustFail: []string{"Value/OnlyAHolderWrites", "Value/AClaimThatIsNotAboveItIsRefusedForTheValue"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		g, err := d.Acquire(ctx, c)
		if err != nil && ctx.Err() == nil && c.Validate() == nil {
			forceValue(d, c.Name, c.Value)
		}
		return g, err
	}),
}, {
	name: "a renewal writes without a lease", mustFail: []string{"Value/OnlyAHolderWrites", "Value/ItOutlivesItsLease"},
	driver: changeRenewal(func(d *faulty, l *driver.LeaseRef) {
		if driver.ValidateValue(l.Value) == nil {
			forceValue(d, l.Name, l.Value)
		}
	}),
}, {
	name: "a waiter that leaves writes", mustFail: []string{"Value/OnlyAHolderWrites"},
	driver: changeRelease(func(d *faulty, l *driver.LeaseRef) {
		if d.held(l.Name, l.Token) == nil {
			forceValue(d, l.Name, l.Value)
		}
	}),
}, {
	name: "the first of several keeps its value", mustFail: []string{"Value/TheLastWriterOfSeveralHoldersWins"},
	step: afterStep(func(e *locktable.Entry, was locktable.Value) {
		if len(e.Holders) > 1 && was.Bytes != nil {
			e.Value = was
		}
	}),
}, {
	name: "a break takes the value along", mustFail: []string{"Value/ABreakLeavesIt"},
	driver: afterBreak(func(e *locktable.Entry, _ driver.Owner) { e.Value = locktable.Value{} }),
}, {
	name:     "no claim is refused for the value",
	mustFail: []string{"Value/AClaimThatIsNotAboveItIsRefusedForTheValue", "Value/OnlyOneOfManyClaimsForTheSameValueIsGranted", "Value/AForceThatIsNotAboveItBreaksNoLease", "Random/OperationsAreAnsweredAsByMemlock"},
	driver:   changeClaim(func(_ *faulty, c *driver.Claim) { c.ValueBelow = nil }),
}, {
	name: "an equal value is below", mustFail: []string{"Value/AClaimThatIsNotAboveItIsRefusedForTheValue", "Value/ItIsComparedAsBytes", "Value/OnlyOneOfManyClaimsForTheSameValueIsGranted"},
	driver: changeClaim(func(_ *faulty, c *driver.Claim) {
		if c.ValueBelow != nil && len(c.ValueBelow) < driver.MaxValue {
			c.ValueBelow = append(slices.Clone(c.ValueBelow), 0)
		}
	}),
}, {
	name: "values are compared by their length first", mustFail: []string{"Value/AClaimThatIsNotAboveItIsRefusedForTheValue", "Value/ItIsComparedAsBytes"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		if v := d.stored(c.Name).Value.Bytes; v != nil && c.ValueBelow != nil && len(v) != len(c.ValueBelow) && c.Validate() == nil {
			if len(v) < len(c.ValueBelow) {
				c.ValueBelow = bytes.Repeat([]byte{0xff}, 8)
			} else {
				c.ValueBelow = []byte{}
			}
		}
		return d.Acquire(ctx, c)
	}),
}, {
	name: "what is written is what is compared", mustFail: []string{"Value/TheConditionAndTheValueMayDiffer"},
	driver: changeClaim(func(_ *faulty, c *driver.Claim) {
		if c.ValueBelow != nil {
			c.ValueBelow = c.Value
		}
	}),
}, {
	name: "a holder that repeats is refused for its value", mustFail: []string{"Value/ARepeatOfAHolderIsAGrant"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		if v := d.stored(c.Name).Value; c.ValueBelow != nil && v.Bytes != nil && bytes.Equal(v.Bytes, c.ValueBelow) && d.held(c.Name, c.Token) != nil {
			return driver.Grant{}, &driver.ValueNotBelowError{Name: c.Name, Value: v.Bytes, Fence: v.Fence}
		}
		return d.Acquire(ctx, c)
	}),
}, {
	name: "a force that is refused for the value breaks", mustFail: []string{"Value/AForceThatIsNotAboveItBreaksNoLease"},
	driver: onValueNotBelow(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		if c.Force {
			d.edit(c.Name, func(e *locktable.Entry, _ locktable.Instant) { e.Holders = nil })
		}
		return d.Acquire(ctx, c)
	}),
}, {
	name: "a claim refused for the value keeps its place", mustFail: []string{"Value/AWaiterWhoseRepeatIsNotAboveItLosesItsPlace", "Value/AHeadRefusedForTheValueLetsTheNextIn"},
	driver: onValueNotBelow(func(_ context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		v := d.stored(c.Name).Value
		return driver.Grant{}, &driver.ValueNotBelowError{Name: c.Name, Value: v.Bytes, Fence: v.Fence}
	}),
}, {
	name: "a claim refused for the value is refused as held", mustFail: []string{"Value/AClaimThatIsNotAboveItIsRefusedForTheValue"},
	driver: onValueNotBelow(func(_ context.Context, _ *faulty, c driver.Claim) (driver.Grant, error) {
		return driver.Grant{}, &driver.HeldError{Name: c.Name}
	}),
}, {
	name: "a waiter's condition is looked at when it comes only", mustFail: []string{"Value/AWaiterNotAboveItAtItsTurnIsSkipped"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		g, err := d.Acquire(ctx, c)
		d.edit(c.Name, func(e *locktable.Entry, _ locktable.Instant) {
			for i := range e.Queue {
				e.Queue[i].ValueBelow = nil
			}
		})
		return g, err
	}),
}, {
	name: "a waiter whose condition has become false holds up the next", mustFail: []string{"Value/AWaiterNotAboveItAtItsTurnIsSkipped"},
	step: func(_ *server, e *locktable.Entry, now locktable.Instant, f apply) {
		stood := slices.Clone(e.Queue)
		f(now)
		if len(stood) > 0 && len(e.Holders) == 1 && stood[0].ValueBelow != nil && bytes.Compare(e.Value.Bytes, stood[0].ValueBelow) >= 0 &&
			e.Holders[0].Token != stood[0].Token && !slices.ContainsFunc(e.Queue, func(w locktable.Waiter) bool { return w.Token == stood[0].Token }) {
			e.Holders = nil
		}
	},
}, {
	name: "a waiter writes what it asked for first", mustFail: []string{"Value/AWaiterWritesTheValueOfItsLastRepeat"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		for _, w := range d.stored(c.Name).Queue {
			if w.Token == c.Token {
				c.Value = w.Value
			}
		}
		return d.Acquire(ctx, c)
	}),
}, {
	name: "no waiter gets a retry",
	mustFail: []string{"Value/AWaiterThatLosesItsTurnGetsARetry", "Signals/TheHeadGetsARetryWhenOnlyTheMinHoldIsLeft",
		"Signals/TheHeadGetsARetryWhenABreakClosesTheName"},
	signal: func(_ *server, sig locktable.Signal) []locktable.Signal {
		if sig.Kind == driver.SignalRetry {
			return nil
		}
		return []locktable.Signal{sig}
	},
}, {
	name: "a value's fence is not raised", mustFail: []string{"Value/ItsFenceIsRaisedWithItsLease"},
	driver: replaceRaiseFence(func(ctx context.Context, d *faulty, l driver.LeaseRef, fence uint64) (uint64, error) {
		was := d.stored(l.Name).Value
		got, err := d.RaiseFence(ctx, l, fence)
		d.edit(l.Name, func(e *locktable.Entry, _ locktable.Instant) { e.Value.Fence = was.Fence })
		return got, err
	}),
}, {
	name: "each raise writes", mustFail: []string{"Value/OnlyTheFirstRaiseWritesIt"},
	driver: replaceRaiseFence(func(ctx context.Context, d *faulty, l driver.LeaseRef, fence uint64) (uint64, error) {
		got, err := d.RaiseFence(ctx, l, fence)
		if l.Value != nil {
			forceValue(d, l.Name, l.Value)
		}
		return got, err
	}),
}, {
	name: "a raise writes where the value is of another lease", mustFail: []string{"Value/ARaiseKeepsTheValueThatAnotherHolderWroteLater"},
	driver: replaceRaiseFence(func(ctx context.Context, d *faulty, l driver.LeaseRef, fence uint64) (uint64, error) {
		if d.held(l.Name, l.Token).Fence != d.stored(l.Name).Value.Fence {
			forceValue(d, l.Name, l.Value)
		}
		return d.RaiseFence(ctx, l, fence)
	}),
}, {
	name: "the end of what writes a value is not looked at", mustFail: []string{"Value/ARenewalOrAReleaseThatComesAfterItsEndWritesNothing"},
	network: network{isLate: func(p *request, _ []*request, late bool) bool {
		return late && p.claim != nil
	}},
}, {
	name: "the end of a claim with a value is not looked at", mustFail: []string{"Value/AClaimThatComesAfterItsEndWritesNothing"},
	network: ignoreEnd(isClaimThat(func(c *driver.Claim) bool { return c.Value != nil })),
}}
