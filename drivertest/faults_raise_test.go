package drivertest_test

import (
	"context"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

var raiseFaults = []fault{{
	name: "a fence is not raised", mustFail: []string{"Raise/MakesTheFenceAtLeastWhatIsAskedFor"},
	driver: replaceRaiseFence(func(_ context.Context, d *faulty, l driver.LeaseRef, _ uint64) (uint64, error) {
		return d.held(l.Name, l.Token).Fence, nil
	}),
}, {
	name: "raising extends the lease", mustFail: []string{"Raise/NeitherCreatesNorExtends"},
	driver: replaceRaiseFence(func(ctx context.Context, d *faulty, l driver.LeaseRef, fence uint64) (uint64, error) {
		_, _ = d.Renew(ctx, []driver.LeaseRef{l})
		return d.RaiseFence(ctx, l, fence)
	}),
}, {
	name: "a raised fence is forgotten with the lease", mustFail: []string{"Raise/TheNextGrantIsAboveIt"},
	driver: replaceRaiseFence(func(ctx context.Context, d *faulty, l driver.LeaseRef, fence uint64) (uint64, error) {
		last := d.stored(l.Name).Fence
		got, err := d.RaiseFence(ctx, l, fence)
		d.edit(l.Name, func(e *locktable.Entry, _ locktable.Instant) { e.Fence = last })
		return got, err
	}),
}}

// raiser is a client with another RaiseFence.
type raiser struct {
	*faulty
	raise func(ctx context.Context, d *faulty, l driver.LeaseRef, fence uint64) (uint64, error)
}

func (d *raiser) RaiseFence(ctx context.Context, l driver.LeaseRef, fence uint64) (uint64, error) {
	if d.held(l.Name, l.Token) == nil || driver.ValidateFence(fence) != nil {
		return d.faulty.RaiseFence(ctx, l, fence)
	}
	return d.raise(ctx, d.faulty, l, fence)
}

func replaceRaiseFence(f func(ctx context.Context, d *faulty, l driver.LeaseRef, fence uint64) (uint64, error)) func(*faulty) driver.Driver {
	return func(d *faulty) driver.Driver { return &raiser{d, f} }
}
