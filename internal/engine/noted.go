package engine

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Noted is a driver over a table that records the answers to its steps in Claims.
type Noted struct {
	*locktable.Driver
	claims *Claims
	begun  func()
}

// NewNoted makes a Noted that records the answers of d in c. It calls begun after each
// step that leaves a claim waiting or holding. begun may be nil.
func NewNoted(d *locktable.Driver, c *Claims, begun func()) Noted {
	if begun == nil {
		begun = func() {}
	}
	return Noted{d, c, begun}
}

// Acquire implements driver.Driver.
func (d *Noted) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	sent := time.Now()
	g, err := d.Driver.Acquire(ctx, c)
	if d.claims.Acquired(&c, sent, err) {
		d.begun()
	}
	return g, err
}

// NotedAll is Noted over a table that is locktable.Grouped.
type NotedAll struct {
	Noted
	grouped *locktable.GroupedDriver
}

// NewNotedAll is NewNoted for a driver over such a table.
func NewNotedAll(d *locktable.GroupedDriver, c *Claims, begun func()) NotedAll {
	return NotedAll{NewNoted(d.Driver, c, begun), d}
}

// AcquireAll implements driver.AllAcquirer.
func (d *NotedAll) AcquireAll(ctx context.Context, claims []driver.Claim) ([]driver.Grant, error) {
	sent := time.Now()
	grants, err := d.grouped.AcquireAll(ctx, claims)
	for i := range grants {
		d.claims.Acquired(&claims[i], sent, nil)
	}
	if len(grants) > 0 {
		d.begun()
	}
	return grants, err
}

// Renew implements driver.Driver.
func (d *Noted) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	sent := time.Now()
	answers, err := d.Driver.Renew(ctx, leases)
	d.claims.Renewed(leases, sent, answers)
	return answers, err
}

// Release implements driver.Driver.
func (d *Noted) Release(ctx context.Context, l driver.LeaseRef) error {
	d.claims.Drop(l.Token)
	return d.Driver.Release(ctx, l)
}
