package drivertest_test

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// replaceRenew returns a fault's driver with another Renew.
func replaceRenew(renew func(ctx context.Context, d *faulty, leases []driver.LeaseRef) ([]error, error)) func(*faulty) driver.Driver {
	return func(d *faulty) driver.Driver { return renewer{d, renew} }
}

// changeRenewal returns a fault's driver that calls do for each valid lease of a batch.
func changeRenewal(do func(d *faulty, l *driver.LeaseRef)) func(*faulty) driver.Driver {
	return replaceRenew(func(ctx context.Context, d *faulty, leases []driver.LeaseRef) ([]error, error) {
		changed := append([]driver.LeaseRef(nil), leases...)
		for i := range changed {
			if driver.ValidateName(changed[i].Name) == nil && driver.ValidateTTL("", changed[i].TTL) == nil {
				do(d, &changed[i])
			}
		}
		return d.Renew(ctx, changed)
	})
}

var renewFaults = []fault{{
	name: "a renewal does not compare the token", mustFail: []string{"Renew/StaleTokenDoesNotRenewTheNewHolder", "Acquire/TokensAreComparedWhole"},
	driver: changeRenewal(func(d *faulty, l *driver.LeaseRef) {
		if hs := d.stored(l.Name).Holders; len(hs) > 0 {
			l.Token = hs[0].Token
		}
	}),
}, {
	name: "a renewal creates a lease", mustFail: []string{"Renew/NeverCreates"},
	driver: changeRenewal(func(d *faulty, l *driver.LeaseRef) {
		if e := d.stored(l.Name); len(e.Holders)+len(e.Queue) == 0 && !l.Token.IsZero() {
			_, _ = d.Acquire(context.Background(), driver.Claim{Name: l.Name, Token: l.Token, Weight: 1, Limit: 1, TTL: l.TTL})
		}
	}),
}, {
	name: "a renewal revives an expired lease", mustFail: []string{"Renew/NeverRevivesAnExpiredLease", "Expiry/ARenewalAtTheVeryInstantIsTooLate"},
	driver: changeRenewal(func(d *faulty, l *driver.LeaseRef) {
		d.edit(l.Name, func(e *locktable.Entry, now locktable.Instant) {
			for i, h := range e.Holders {
				if h.Token == l.Token && !h.Token.IsZero() {
					e.Holders[i].Expires = max(h.Expires, now.Add(l.TTL))
				}
			}
		})
	}),
}, {
	name: "a renewal shortens", mustFail: []string{"Renew/NeverShortens", "Random/OperationsAreAnsweredAsByMemlock"},
	driver: changeRenewal(func(d *faulty, l *driver.LeaseRef) {
		d.edit(l.Name, func(e *locktable.Entry, now locktable.Instant) {
			for i, h := range e.Holders {
				if h.Token == l.Token && !h.Token.IsZero() && h.Expires > now {
					e.Holders[i].Expires = now.Add(l.TTL)
				}
			}
		})
	}),
}, {
	name: "a renewal keeps the TTL of the claim", mustFail: []string{"Inspect/TheTTLIsTheOneLastAskedFor", "Random/OperationsAreAnsweredAsByMemlock"},
	driver: replaceRenew(func(ctx context.Context, d *faulty, leases []driver.LeaseRef) ([]error, error) {
		before := map[driver.Token]time.Duration{}
		for _, l := range leases {
			for _, h := range d.stored(l.Name).Holders {
				before[h.Token] = h.TTL
			}
		}
		answers, err := d.Renew(ctx, leases)
		for _, l := range leases {
			d.edit(l.Name, func(e *locktable.Entry, _ locktable.Instant) {
				for i, h := range e.Holders {
					if h.Token == l.Token && before[h.Token] > 0 {
						e.Holders[i].TTL = before[h.Token]
					}
				}
			})
		}
		return answers, err
	}),
}, {
	name: "a renewal only looks", mustFail: []string{"Renew/MakesTheLeaseLastItsTTLFromNow", "Promotion/TheNextRenewalExtendsItToATTL"},
	driver: changeRenewal(func(_ *faulty, l *driver.LeaseRef) { l.TTL = driver.MinTTL }),
}, {
	name: "a renewal extends all the leases of a name", mustFail: []string{"Renew/DoesNotExtendOtherLeasesOfTheName", "ReadWrite/ADeadReaderDoesNotLiveOnBecauseAnotherRenews"},
	driver: changeRenewal(func(d *faulty, l *driver.LeaseRef) {
		d.edit(l.Name, func(e *locktable.Entry, now locktable.Instant) {
			for i, h := range e.Holders {
				if h.Expires > now {
					e.Holders[i].Expires = max(h.Expires, now.Add(l.TTL))
				}
			}
		})
	}),
}, {
	name: "half of a batch is lost", mustFail: []string{"Renew/AnswersEachLeaseOfABatchInOrder", "Renew/EveryLeaseOfALargeBatchIsRenewed"},
	driver: replaceRenew(func(ctx context.Context, d *faulty, leases []driver.LeaseRef) ([]error, error) {
		half := (len(leases) + 1) / 2
		answers, err := d.Renew(ctx, leases[:half])
		if err == nil {
			answers = append(answers, make([]error, len(leases)-half)...)
		}
		return answers, err
	}),
}, {
	name: "a batch stops at 256", mustFail: []string{"Renew/EveryLeaseOfALargeBatchIsRenewed"},
	driver: replaceRenew(func(ctx context.Context, d *faulty, leases []driver.LeaseRef) ([]error, error) {
		some := leases[:min(len(leases), 256)]
		answers, err := d.Renew(ctx, some)
		if err == nil {
			answers = append(answers, make([]error, len(leases)-len(some))...)
		}
		return answers, err
	}),
}, {
	name: "a batch is answered by name", mustFail: []string{"Renew/ANameMayStandInABatchSeveralTimes"},
	driver: replaceRenew(func(ctx context.Context, d *faulty, leases []driver.LeaseRef) ([]error, error) {
		answers, err := d.Renew(ctx, leases)
		byName := map[string]error{}
		for i := range answers {
			byName[leases[i].Name] = answers[i]
		}
		for i := range answers {
			answers[i] = byName[leases[i].Name]
		}
		return answers, err
	}),
}, {
	name: "one lost lease fails the whole batch", mustFail: []string{"Renew/AnswersEachLeaseOfABatchInOrder", "Renew/NeverCreates"},
	driver: replaceRenew(func(ctx context.Context, d *faulty, leases []driver.LeaseRef) ([]error, error) {
		answers, err := d.Renew(ctx, leases)
		for _, a := range answers {
			if a != nil {
				return nil, a
			}
		}
		return answers, err
	}),
}, {
	name: "the zero token renews what is kept", mustFail: []string{"Renew/TheZeroTokenRenewsNothing"},
	driver: replaceRenew(func(ctx context.Context, d *faulty, leases []driver.LeaseRef) ([]error, error) {
		answers, err := d.Renew(ctx, leases)
		for i := range answers {
			if leases[i].Token.IsZero() && d.held(leases[i].Name, driver.Token{}) != nil {
				answers[i] = nil
			}
		}
		return answers, err
	}),
}}
