package drivertest_test

import (
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

var expiryFaults = []fault{{
	name:     "a lease ends one step late",
	mustFail: []string{"Expiry/ALeaseIsOverAtTheVeryInstant", "Expiry/ARenewalAtTheVeryInstantIsTooLate", "Place/IsLostAtTheVeryInstant", "Random/OperationsAreAnsweredAsByMemlock"},
	step: beforeStep(func(e *locktable.Entry, now locktable.Instant) {
		for i := range e.Holders {
			if e.Holders[i].Expires == now {
				e.Holders[i].Expires++
			}
		}
		for i := range e.Queue {
			if e.Queue[i].Expires == now {
				e.Queue[i].Expires++
			}
		}
	}),
}, {
	name: "a name opens one step late", mustFail: []string{"LockDelay/OpensAtTheVeryInstant", "Break/OpensAtTheVeryInstant"},
	step: beforeStep(func(e *locktable.Entry, now locktable.Instant) {
		if e.Closed == now {
			e.Closed++
		}
	}),
}, {
	name: "a lease ends one step early", mustFail: []string{"Expiry/ALeaseIsOverAtTheVeryInstant", "Random/OperationsAreAnsweredAsByMemlock"},
	step: beforeStep(func(e *locktable.Entry, now locktable.Instant) {
		for i := range e.Holders {
			if e.Holders[i].Expires == now+1 {
				e.Holders[i].Expires = now
			}
		}
	}),
}, {
	name: "an expired holder is counted", mustFail: []string{"Expiry/ALeaseEndsByItself", "Semaphore/ADeadHoldersPermitIsFreeAfterItsExpiry"},
	step: beforeStep(func(e *locktable.Entry, now locktable.Instant) {
		for i := range e.Holders {
			e.Holders[i].Expires = max(e.Holders[i].Expires, now+1)
		}
	}),
}, {
	name: "a record lives as long as the longest lease in it", mustFail: []string{"Expiry/EachPermitHasATimeOfItsOwn", "ReadWrite/ADeadReaderDoesNotLiveOnBecauseAnotherRenews"},
	step: afterStep(func(e *locktable.Entry, _ locktable.Value) {
		for i := range e.Holders {
			for j := range e.Holders {
				e.Holders[i].Expires = max(e.Holders[i].Expires, e.Holders[j].Expires)
			}
		}
	}),
}, {
	name: "a dead waiter stays", mustFail: []string{"Place/AnExpiredPlaceIsLostAndTheRepeatJoinsAtTheEnd", "Place/ADeadHeadLetsTheNextIn", "Place/AnExpiredPlaceBlocksATryNoLonger"},
	step: beforeStep(func(e *locktable.Entry, now locktable.Instant) {
		for i := range e.Queue {
			e.Queue[i].Expires = max(e.Queue[i].Expires, now+1)
		}
	}),
}, {
	name:     "a promoted grant lasts a TTL at once",
	mustFail: []string{"Promotion/LastsAsLongAsThePlace", "Place/ADeadWaiterCostsTheOthersNoMoreThanItsQueueTTL", "Promotion/AnExpiredGrantPassesToTheNextWaiter"},
	step:     changePromotedLease(func(h *locktable.Holder, now locktable.Instant) { h.Expires = now.Add(time.Hour) }),
}, {
	name: "a promoted grant lasts a QueueTTL from the passing on", mustFail: []string{"Promotion/LastsNoLongerThanThePlaceWouldHave"},
	step: func(_ *server, e *locktable.Entry, now locktable.Instant, f apply) {
		queueTTLs := map[driver.Token]time.Duration{}
		for _, w := range e.Queue {
			queueTTLs[w.Token] = w.Since.Until(w.Expires) // of waiters that asked once
		}
		f(now)
		for _, s := range e.Signals {
			for i := range e.Holders {
				if e.Holders[i].Token == s.Token && s.Kind == driver.SignalGranted {
					e.Holders[i].Expires = now.Add(queueTTLs[s.Token])
				}
			}
		}
	},
}, {
	name: "a promoted grant shows what its place had left as its TTL", mustFail: []string{"Promotion/HasTheTTLOfItsClaim"},
	step: changePromotedLease(func(h *locktable.Holder, now locktable.Instant) { h.TTL = now.Until(h.Expires) }),
}, {
	name: "a promoted grant forgets its owner", mustFail: []string{"Promotion/KeepsTheClaimsWeightAndOwner"},
	step: changePromotedLease(func(h *locktable.Holder, _ locktable.Instant) { h.Owner = driver.Owner{} }),
}, {
	name: "a lock-delay is ignored", mustFail: []string{"LockDelay/KeepsTheNameClosedAfterAnExpiry", "LockDelay/OpensAtTheVeryInstant"},
	driver: changeClaim(func(_ *faulty, c *driver.Claim) { c.LockDelay = 0 }),
}, {
	name: "a lock-delay counts from when the expiry is found", mustFail: []string{"LockDelay/CountsFromTheExpiryWheneverItIsFound"},
	step: beforeStep(func(e *locktable.Entry, now locktable.Instant) {
		for i := range e.Holders {
			if e.Holders[i].LockDelay > 0 && e.Holders[i].Expires < now {
				e.Holders[i].Expires = now
			}
		}
	}),
}, {
	name: "a promoted claim loses its lock-delay", mustFail: []string{"LockDelay/IsKeptByAPromotedClaim"},
	step: changePromotedLease(func(h *locktable.Holder, _ locktable.Instant) { h.LockDelay = 0 }),
}, {
	name: "a waiter that dies closes the name", mustFail: []string{"LockDelay/DoesNotFollowAPlaceThatExpires"},
	step: beforeStep(func(e *locktable.Entry, now locktable.Instant) {
		for _, w := range e.Queue {
			if w.Expires <= now && w.LockDelay > 0 {
				e.Closed = max(e.Closed, w.Expires.Add(w.LockDelay))
			}
		}
	}),
}, {
	name: "a shorter lock-delay replaces a longer one", mustFail: []string{"LockDelay/TheLongerOfTwoCounts"},
	step: beforeStep(func(e *locktable.Entry, now locktable.Instant) {
		for _, h := range e.Holders {
			if h.Expires <= now && h.LockDelay > 0 {
				e.Closed = 0
			}
		}
	}),
}}

// changePromotedLease returns a fault's step that changes each lease that it grants to a
// waiter.
func changePromotedLease(change func(h *locktable.Holder, now locktable.Instant)) func(*server, *locktable.Entry, locktable.Instant, apply) {
	return func(_ *server, e *locktable.Entry, now locktable.Instant, f apply) {
		f(now)
		for _, s := range e.Signals {
			for i := range e.Holders {
				if s.Kind == driver.SignalGranted && e.Holders[i].Token == s.Token {
					change(&e.Holders[i], now)
				}
			}
		}
	}
}
