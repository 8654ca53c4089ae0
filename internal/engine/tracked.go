package engine

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Tracked is a driver over a table that records the answers to its steps in Claims.
type Tracked struct {
	*locktable.Driver
	claims  *Claims
	onClaim func()
}

// NewTracked makes a Tracked that records the answers of d in c. It calls onClaim after
// each Acquire or AcquireAll that leaves a claim waiting or holding. onClaim may be nil.
func NewTracked(d *locktable.Driver, c *Claims, onClaim func()) Tracked {
	if onClaim == nil {
		onClaim = func() {}
	}
	return Tracked{d, c, onClaim}
}

// Acquire implements driver.Driver.
func (d *Tracked) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	sent := time.Now()
	g, err := d.Driver.Acquire(ctx, c)
	if d.claims.Acquired(&c, sent, err) {
		d.onClaim()
	}
	return g, err
}

// TrackedAll is Tracked over a table that is locktable.Grouped.
type TrackedAll struct {
	Tracked
	grouped *locktable.GroupedDriver
}

// NewTrackedAll is NewTracked for a driver over such a table.
func NewTrackedAll(d *locktable.GroupedDriver, c *Claims, onClaim func()) TrackedAll {
	return TrackedAll{NewTracked(d.Driver, c, onClaim), d}
}

// AcquireAll implements driver.AllAcquirer.
func (d *TrackedAll) AcquireAll(ctx context.Context, claims []driver.Claim) ([]driver.Grant, error) {
	sent := time.Now()
	grants, err := d.grouped.AcquireAll(ctx, claims)
	for i := range grants {
		d.claims.Acquired(&claims[i], sent, nil)
	}
	if len(grants) > 0 {
		d.onClaim()
	}
	return grants, err
}

// Renew implements driver.Driver.
func (d *Tracked) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	sent := time.Now()
	answers, err := d.Driver.Renew(ctx, leases)
	d.claims.Renewed(leases, sent, answers)
	return answers, err
}

// Release implements driver.Driver.
func (d *Tracked) Release(ctx context.Context, l driver.LeaseRef) error {
	d.claims.Drop(l.Token)
	return d.Driver.Release(ctx, l)
}
