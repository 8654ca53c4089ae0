package postgreslock

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// Renew implements driver.Driver.
func (d *Driver) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	return d.inner.Renew(context.WithValue(ctx, renewing{}, true), leases)
}

// Release implements driver.Driver.
func (d *Driver) Release(ctx context.Context, l driver.LeaseRef) error {
	d.listener.noteClaimEnd()
	return d.inner.Release(ctx, l)
}
