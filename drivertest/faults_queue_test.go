package drivertest_test

import (
	"context"
	"slices"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// hideQueueFrom returns a fault's driver that hides the waiters from some claims.
func hideQueueFrom(who func(d *faulty, c driver.Claim) bool) func(*faulty) driver.Driver {
	return replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (g driver.Grant, err error) {
		if c.Validate() != nil || ctx.Err() != nil || !who(d, c) {
			return d.Acquire(ctx, c)
		}
		d.withoutQueue(c.Name, func() { g, err = d.Acquire(ctx, c) })
		return g, err
	})
}

// changeQueue returns a fault's driver that changes the queue before each claim.
func changeQueue(change func(e *locktable.Entry, c driver.Claim, place int)) func(*faulty) driver.Driver {
	return changeClaim(func(d *faulty, c *driver.Claim) {
		d.edit(c.Name, func(e *locktable.Entry, _ locktable.Instant) {
			place := slices.IndexFunc(e.Queue, func(w locktable.Waiter) bool { return w.Token == c.Token })
			change(e, *c, place)
		})
	})
}

var queueFaults = []fault{{
	name:     "readers pass a waiting writer",
	mustFail: []string{"ReadWrite/NoReaderPassesAWaitingWriter", "ReadWrite/EachWaitingWriterWaitsForItself", "Random/OperationsAreAnsweredAsByMemlock"},
	driver:   hideQueueFrom(func(_ *faulty, c driver.Claim) bool { return c.Weight == 1 && c.Limit == driver.Unlimited }),
}, {
	name: "a try passes those who wait", mustFail: []string{"Queue/ATryFailsWhileAClaimWaits"},
	driver: hideQueueFrom(func(_ *faulty, c driver.Claim) bool { return !c.Queue && !c.Force }),
}, {
	name: "small claims pass large ones", mustFail: []string{"Queue/NoClaimPassesAWaiterThatNeedsMore"},
	driver: hideQueueFrom(func(d *faulty, c driver.Claim) bool {
		q := d.stored(c.Name).Queue
		return len(q) > 0 && c.Weight < q[0].Weight && c.Limit != driver.Unlimited
	}),
}, {
	name: "a dead holder's name goes to the next claim", mustFail: []string{"Queue/ADeadHoldersNameGoesToTheHeadAndNotToTheNextClaim"},
	driver: hideQueueFrom(func(d *faulty, c driver.Claim) bool {
		now := locktable.At(d.table.server.now())
		return slices.ContainsFunc(d.stored(c.Name).Holders, func(h locktable.Holder) bool { return h.Expires <= now })
	}),
}, {
	name:     "a claim that should wait is granted",
	mustFail: []string{"Queue/PlacesCountFromOneAndMoveUp", "Concurrent/TheQueueAdmitsOneAtATimeInTheOrderOfFences", "Client/AMutexIsHeldByOneGoroutineOfAllClients"},
	driver: changeQueue(func(e *locktable.Entry, c driver.Claim, _ int) {
		if c.Queue {
			e.Holders = nil
		}
	}),
}, {
	name: "the queue is forgotten", mustFail: []string{"Queue/ServesInTheOrderOfArrival", "Release/PassesTheNameToTheHeadOfTheQueueAtOnce"},
	driver: changeQueue(func(e *locktable.Entry, _ driver.Claim, _ int) { e.Queue = nil }),
}, {
	name: "the last one in is served first", mustFail: []string{"Queue/ServesInTheOrderOfArrival", "Queue/AskingAgainNeitherMovesNorAddsAPlace"},
	driver: changeQueue(func(e *locktable.Entry, c driver.Claim, place int) {
		if place > 0 {
			w := e.Queue[place]
			e.Queue = slices.Insert(slices.Delete(e.Queue, place, place+1), 0, w)
		}
	}),
}, {
	name: "a repeat goes to the end", mustFail: []string{"Queue/AskingAgainNeitherMovesNorAddsAPlace", "Place/EachRepeatKeepsItForAnotherQueueTTL"},
	driver: changeQueue(func(e *locktable.Entry, _ driver.Claim, place int) {
		if place >= 0 {
			e.Queue = slices.Delete(e.Queue, place, place+1)
		}
	}),
}, {
	name: "a repeat takes a second place", mustFail: []string{"Queue/AskingAgainNeitherMovesNorAddsAPlace"},
	driver: changeQueue(func(e *locktable.Entry, c driver.Claim, place int) {
		if place >= 0 && c.Queue {
			e.Queue = slices.Insert(e.Queue, place, e.Queue[place])
			e.Queue[place].Token = driver.NewToken()
		}
	}),
}, {
	name: "a repeat does not keep the place", mustFail: []string{"Place/EachRepeatKeepsItForAnotherQueueTTL"},
	step: func(_ *server, e *locktable.Entry, now locktable.Instant, f apply) {
		kept := map[driver.Token]locktable.Instant{}
		for _, w := range e.Queue {
			if w.Expires > now {
				kept[w.Token] = w.Expires
			}
		}
		f(now)
		for i, w := range e.Queue {
			if until, was := kept[w.Token]; was {
				e.Queue[i].Expires = until
			}
		}
	},
}, {
	name: "a repeat with a try loses the place", mustFail: []string{"Place/ARepeatWithATryDoesNotLoseIt"},
	driver: changeQueue(func(e *locktable.Entry, c driver.Claim, place int) {
		if place >= 0 && !c.Queue {
			e.Queue = slices.Delete(e.Queue, place, place+1)
		}
	}),
}, {
	name: "a try takes a place", mustFail: []string{"Queue/ATryNeverQueues", "Acquire/ATryLeavesNothingBehind"},
	driver: changeClaim(func(_ *faulty, c *driver.Claim) {
		if !c.Queue {
			c.Queue, c.QueueTTL = true, c.TTL
		}
	}),
}, {
	name: "places count from zero", mustFail: []string{"Queue/PlacesCountFromOneAndMoveUp"},
	driver: changeHeldError(func(held *driver.HeldError) { held.Position = max(held.Position-1, 0) }),
}, {
	name: "one at a time is let in", mustFail: []string{"Queue/AllWaitersThatFitAreGrantedAtOnce", "ReadWrite/AfterTheWriterAllReadersUpToTheNextWriterEnter"},
	step: func(_ *server, e *locktable.Entry, now locktable.Instant, f apply) {
		var behind []locktable.Waiter
		if len(e.Queue) > 1 {
			behind, e.Queue = slices.Clone(e.Queue[1:]), e.Queue[:1:1]
		}
		f(now)
		e.Queue = append(e.Queue, behind...)
	},
}, {
	name: "a waiter's limit is the holder's", mustFail: []string{"Semaphore/AWaiterIsHeldToItsOwnLimit"},
	driver: changeClaim(func(d *faulty, c *driver.Claim) {
		if hs := d.stored(c.Name).Holders; c.Queue && len(hs) > 0 && c.Limit != driver.Unlimited && hs[0].Limit != driver.Unlimited {
			c.Limit = max(hs[0].Limit, c.Weight)
		}
	}),
}}
