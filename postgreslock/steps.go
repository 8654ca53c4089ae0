package postgreslock

import (
	"context"
	"errors"

	"github.com/pawl-go/pawl/driver"
)

// Acquire implements driver.Driver.
func (d *Driver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := d.Driver.Acquire(ctx, c)
	switch {
	case err == nil:
		d.listener.watch(&c, true, c.TTL)
	case c.Queue && errors.Is(err, driver.ErrHeld):
		d.listener.watch(&c, false, c.QueueTTL)
	}
	return g, err
}

// AcquireAll implements driver.AllAcquirer.
func (d *Driver) AcquireAll(ctx context.Context, claims []driver.Claim) ([]driver.Grant, error) {
	grants, err := d.Driver.AcquireAll(ctx, claims)
	for i := range grants {
		d.listener.watch(&claims[i], true, claims[i].TTL)
	}
	return grants, err
}

// Renew implements driver.Driver.
func (d *Driver) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	d.listener.keep(leases)
	return d.Driver.Renew(context.WithValue(ctx, renewing{}, true), leases)
}

// Release implements driver.Driver.
func (d *Driver) Release(ctx context.Context, l driver.LeaseRef) error {
	d.listener.forget(l.Token)
	return d.Driver.Release(ctx, l)
}
