package drivertest_test

import (
	"context"
	"errors"
	"slices"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// allAcquirer is a driver with another AcquireAll.
type allAcquirer struct {
	*faulty
	all func(ctx context.Context, d *faulty, claims []driver.Claim) ([]driver.Grant, error)
}

func (h *allAcquirer) AcquireAll(ctx context.Context, claims []driver.Claim) ([]driver.Grant, error) {
	if err := driver.ValidateAll(claims); err != nil {
		return nil, err
	}
	return h.all(ctx, h.faulty, claims)
}

// replaceAcquireAll returns a fault's driver with another AcquireAll.
func replaceAcquireAll(all func(ctx context.Context, d *faulty, claims []driver.Claim) ([]driver.Grant, error)) func(*faulty) driver.Driver {
	return func(d *faulty) driver.Driver { return &allAcquirer{d, all} }
}

// acquireOneByOne makes the claims in turn. If one is refused, it keeps its leases.
func acquireOneByOne(ctx context.Context, d *faulty, claims []driver.Claim) (grants []driver.Grant, _ error) {
	for _, c := range claims {
		g, err := d.Acquire(ctx, c)
		if err != nil {
			return nil, err
		}
		grants = append(grants, g)
	}
	return grants, nil
}

var allFaults = []fault{{
	name: "some are granted, and another is in the way", mustFail: []string{"All/NoneIsGrantedIfOneIsHeld", "All/NoWaiterIsPassed"},
	driver: replaceAcquireAll(acquireOneByOne),
}, {
	name: "some are granted, and given back", mustFail: []string{"All/ValuesAreWrittenWithAllOrWithNone"},
	driver: replaceAcquireAll(func(ctx context.Context, d *faulty, claims []driver.Claim) ([]driver.Grant, error) {
		grants, err := acquireOneByOne(ctx, d, claims)
		for i := range claims {
			if err != nil {
				_ = d.Release(ctx, driver.LeaseRef{Name: claims[i].Name, Token: claims[i].Token})
			}
		}
		return grants, err
	}),
}, {
	name: "the last that is in the way is named", mustFail: []string{"All/TheErrorNamesTheFirstHeldName"},
	driver: replaceAcquireAll(func(ctx context.Context, d *faulty, claims []driver.Claim) ([]driver.Grant, error) {
		grants, err := d.AcquireAll(ctx, claims)
		if held, ok := errors.AsType[*driver.HeldError](err); ok {
			held.Name = claims[len(claims)-1].Name
		}
		return grants, err
	}),
}, {
	name: "those who wait for one of several are passed", mustFail: []string{"All/NoWaiterIsPassed"},
	driver: replaceAcquireAll(func(ctx context.Context, d *faulty, claims []driver.Claim) (grants []driver.Grant, err error) {
		d.withoutQueue(claims[len(claims)-1].Name, func() { grants, err = d.AcquireAll(ctx, claims) })
		return grants, err
	}),
}, {
	name: "one alone is refused", mustFail: []string{"All/ASingleClaimIsGrantedAsByAcquire"},
	driver: replaceAcquireAll(func(ctx context.Context, d *faulty, claims []driver.Claim) ([]driver.Grant, error) {
		if len(claims) == 1 {
			return nil, errors.ErrUnsupported
		}
		return d.AcquireAll(ctx, claims)
	}),
}, {
	name: "all have one fence", mustFail: []string{"All/EachIsGrantedWithAFenceOfItsOwn"},
	driver: replaceAcquireAll(func(ctx context.Context, d *faulty, claims []driver.Claim) ([]driver.Grant, error) {
		grants, err := d.AcquireAll(ctx, claims)
		for i := range grants {
			grants[i].Fence = grants[0].Fence
		}
		return grants, err
	}),
}, {
	name: "the same tokens get new grants", mustFail: []string{"All/TheSameTokensAgainAreTheSameGrants"},
	driver: replaceAcquireAll(func(ctx context.Context, d *faulty, claims []driver.Claim) ([]driver.Grant, error) {
		for _, c := range claims {
			_ = d.Release(ctx, driver.LeaseRef{Name: c.Name, Token: c.Token})
		}
		return d.AcquireAll(ctx, claims)
	}),
}, {
	name: "they never expire", mustFail: []string{"All/TheyAreLeasesLikeAnyOther"},
	driver: replaceAcquireAll(func(ctx context.Context, d *faulty, claims []driver.Claim) ([]driver.Grant, error) {
		forever := append([]driver.Claim(nil), claims...)
		for i := range forever {
			forever[i].TTL = driver.MaxTTL
		}
		grants, err := d.AcquireAll(ctx, forever)
		for i := range grants {
			grants[i].TTL = claims[i].TTL
		}
		return grants, err
	}),
}, {
	name: "a refused one undoes what it has passed on", mustFail: []string{"All/ARefusedCallStillPassesOnExpiredNames"},
	driver: replaceAcquireAll(func(ctx context.Context, d *faulty, claims []driver.Claim) ([]driver.Grant, error) {
		before := make([]*locktable.Entry, len(claims))
		for i, c := range claims {
			before[i] = d.stored(c.Name)
		}
		grants, err := d.AcquireAll(ctx, claims)
		for i, c := range claims {
			if err != nil {
				d.edit(c.Name, func(e *locktable.Entry, _ locktable.Instant) { *e = *before[i] })
			}
		}
		return grants, err
	}),
}, {
	name: "a call that finds an expired lease sends no signal", mustFail: []string{"All/ARefusedCallStillPassesOnExpiredNames"},
	step: func(_ *server, e *locktable.Entry, now locktable.Instant, f apply) {
		expired := slices.ContainsFunc(e.Holders, func(h locktable.Holder) bool { return h.Expires <= now })
		f(now)
		e.Visible = e.Visible && !expired
	},
}, {
	name: "several claims have no end", mustFail: []string{"All/LateClaimsChangeNothing"},
	network: network{isLate: func(p *request, _ []*request, late bool) bool { return late && !p.isAll }},
}}
