package drivertest_test

import (
	"context"
	"runtime"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// replaceAcquire returns a fault's driver with another Acquire.
func replaceAcquire(acquire func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error)) func(*faulty) driver.Driver {
	return func(d *faulty) driver.Driver { return acquirer{d, acquire} }
}

// changeClaim returns a fault's driver that changes each claim.
func changeClaim(change func(d *faulty, c *driver.Claim)) func(*faulty) driver.Driver {
	return replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		if c.Validate() == nil {
			change(d, &c)
		}
		return d.Acquire(ctx, c)
	})
}

// changeGrant returns a fault's driver that calls change with the grant of each claim.
func changeGrant(change func(d *faulty, c driver.Claim, g *driver.Grant)) func(*faulty) driver.Driver {
	return replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		g, err := d.Acquire(ctx, c)
		if err == nil {
			change(d, c, &g)
		}
		return g, err
	})
}

var acquireFaults = []fault{{
	name:     "a repeated token gets a second grant",
	mustFail: []string{"Acquire/RepeatedByOneOfSeveralHoldersTakesNothingMore", "Concurrent/ConcurrentRepeatsOfATokenGetOneGrant", "Random/OperationsAreAnsweredAsByMemlock"},
	driver: changeClaim(func(d *faulty, c *driver.Claim) {
		if c.Weight != driver.Exclusive { // a mutex would block its own repeat, which is another fault
			d.edit(c.Name, func(e *locktable.Entry, _ locktable.Instant) {
				for i := range e.Holders {
					if e.Holders[i].Token == c.Token {
						e.Holders[i].Token = driver.NewToken()
					}
				}
			})
		}
	}),
}, {
	name: "a repeated token is held up by itself", mustFail: []string{"Acquire/RepeatedAfterALostReplyAnswersWithTheSameGrant", "Promotion/RepeatedClaimsGetTheSameGrant"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		if d.held(c.Name, c.Token) != nil {
			c.Token, c.Queue = driver.NewToken(), false
		}
		return d.Acquire(ctx, c)
	}),
}, {
	name: "a repeat does not make it last", mustFail: []string{"Acquire/RepeatedRunsForAFullTTLFromTheRepeat", "Promotion/TheNextAcquireExtendsItToATTL"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		if c.Validate() == nil {
			if h := d.held(c.Name, c.Token); h != nil && h.Expires > locktable.At(d.table.server.now()) {
				c.TTL = max(time.Duration(h.Expires-locktable.At(d.table.server.now()))*time.Microsecond, driver.MinTTL)
			}
		}
		g, err := d.Acquire(ctx, c)
		g.TTL = max(g.TTL, time.Hour*24*30)
		if err != nil {
			g = driver.Grant{}
		}
		return g, err
	}),
}, {
	name: "an owner gets in twice", mustFail: []string{"Acquire/TheSameOwnerIsNotLetInTwice"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		for _, h := range d.stored(c.Name).Holders {
			if h.Owner.Client == c.Owner.Client && h.Owner.Client != "" && !h.Token.IsZero() {
				return driver.Grant{Fence: h.Fence, Fences: h.Fences, TTL: c.TTL}, nil
			}
		}
		return d.Acquire(ctx, c)
	}),
}, {
	name: "tokens are compared by half", mustFail: []string{"Acquire/TokensAreComparedWhole"},
	driver: changeRelease(func(d *faulty, l *driver.LeaseRef) {
		for _, h := range d.stored(l.Name).Holders {
			if [8]byte(h.Token[:8]) == [8]byte(l.Token[:8]) && !h.Token.IsZero() {
				l.Token = h.Token
			}
		}
	}),
}, {
	name: "a try lengthens the holder's time", mustFail: []string{"Acquire/AContendedTryDoesNotLengthenTheHoldersTime"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		g, err := d.Acquire(ctx, c)
		if err != nil && c.Validate() == nil {
			d.edit(c.Name, func(e *locktable.Entry, now locktable.Instant) {
				for i := range e.Holders {
					e.Holders[i].Expires = max(e.Holders[i].Expires, now.Add(c.TTL))
				}
			})
		}
		return g, err
	}),
}, {
	name: "a refusal does not name the holder", mustFail: []string{"Acquire/TheSecondIsRefusedAndTheErrorNamesTheHolder"},
	driver: changeHeldError(func(held *driver.HeldError) { held.Holders, held.Holder = 0, driver.Holder{} }),
}, {
	name: "a refusal looks at the holder who was granted first",
	mustFail: []string{
		"Expiry/RetryAfterIsWhenTheFirstOfSeveralHoldersExpires", "Expiry/ARefusalCountsTheHoldersAndNamesTheOneThatEndsFirst",
	},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		g, err := d.Acquire(ctx, c)
		if held, ok := err.(*driver.HeldError); ok && held.Holders > 1 {
			if e, err := d.Inspect(ctx, c.Name); err == nil && len(e.Holders) > 1 {
				held.Holder, held.RetryAfter = e.Holders[0], e.Holders[0].ExpiresIn
			}
		}
		return g, err
	}),
}, {
	name: "a refusal does not say until when", mustFail: []string{"Expiry/RetryAfterIsWhenTheHolderExpires", "Queue/AWaiterNeedsNoOtherEventThanTheExpiry"},
	driver: changeHeldError(func(held *driver.HeldError) { held.RetryAfter = 0 }),
}, {
	name: "a refusal forgets the lock-delay", mustFail: []string{"Expiry/RetryAfterCountsTheLockDelay", "Random/OperationsAreAnsweredAsByMemlock"},
	driver: changeHeldError(func(held *driver.HeldError) {
		if held.Holders > 0 && held.ClosedFor == 0 {
			held.RetryAfter = min(held.RetryAfter, held.Holder.ExpiresIn)
		}
	}),
}, {
	name: "a refusal does not look at the queue", mustFail: []string{"Expiry/RetryAfterIsWhenTheHeadOfTheQueueLosesItsPlace"},
	driver: changeHeldError(func(held *driver.HeldError) {
		if held.Holders > 0 && held.ClosedFor == 0 && held.RetryAfter < held.Holder.ExpiresIn {
			held.RetryAfter = held.Holder.ExpiresIn
		}
	}),
}, {
	name: "a refusal does not say the last fence", mustFail: []string{"Acquire/ARefusalSaysWhichFenceWasGrantedLast"},
	driver: changeHeldError(func(held *driver.HeldError) { held.Fence = 0 }),
}, {
	name: "the caller's limit is ignored", mustFail: []string{"Semaphore/EachCallerIsHeldToItsOwnLimit"},
	driver: changeClaim(func(d *faulty, c *driver.Claim) {
		if hs := d.stored(c.Name).Holders; len(hs) > 0 && c.Limit != driver.Unlimited {
			c.Limit = max(hs[0].Limit, c.Weight)
		}
	}),
}, {
	name: "weights are counted as one", mustFail: []string{"Semaphore/WeightsAreAddedUp"},
	driver: changeClaim(func(_ *faulty, c *driver.Claim) {
		if c.Limit != driver.Unlimited {
			c.Weight = 1
		}
	}),
}, {
	name: "weights overflow", mustFail: []string{"Semaphore/TheLargestWeightsDoNotOverflow"},
	driver: changeClaim(func(d *faulty, c *driver.Claim) {
		sum := int32(c.Weight)
		for _, h := range d.stored(c.Name).Holders {
			sum += int32(h.Weight)
		}
		if sum < 0 {
			d.edit(c.Name, func(e *locktable.Entry, _ locktable.Instant) { e.Holders = nil })
		}
	}),
}, {
	name: "a name is checked and taken in two steps", mustFail: []string{"Concurrent/TriesAdmitOneAtATime"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		if len(d.stored(c.Name).Holders) > 0 || c.Queue || c.Limit != driver.Unlimited {
			return d.Acquire(ctx, c)
		}
		for range 10 {
			runtime.Gosched()
		}
		var others []locktable.Holder
		d.edit(c.Name, func(e *locktable.Entry, _ locktable.Instant) { others, e.Holders = e.Holders, nil })
		g, err := d.Acquire(ctx, c)
		d.edit(c.Name, func(e *locktable.Entry, _ locktable.Instant) { e.Holders = append(others, e.Holders...) })
		return g, err
	}),
}}

// changeHeldError returns a fault's driver that changes the HeldErrors of claims.
func changeHeldError(change func(*driver.HeldError)) func(*faulty) driver.Driver {
	return replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		g, err := d.Acquire(ctx, c)
		if held, ok := err.(*driver.HeldError); ok {
			change(held)
		}
		return g, err
	})
}
