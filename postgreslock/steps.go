package postgreslock

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// Renew implements driver.Driver.
func (d *lockDriver) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	return d.NotedAll.Renew(context.WithValue(ctx, renewing{}, true), leases)
}

// Release implements driver.Driver.
func (d *lockDriver) Release(ctx context.Context, l driver.LeaseRef) error {
	d.listener.noteClaimEnd()
	return d.NotedAll.Release(ctx, l)
}
