package memlock

import (
	"context"
	"iter"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Acquire implements [driver.Driver].
func (d *Driver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return d.inner.Acquire(ctx, c)
}

// AcquireAll implements [driver.AllAcquirer].
func (d *Driver) AcquireAll(ctx context.Context, claims []driver.Claim) ([]driver.Grant, error) {
	return d.inner.AcquireAll(ctx, claims)
}

// Renew implements [driver.Driver].
func (d *Driver) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	return d.inner.Renew(ctx, leases)
}

// Release implements [driver.Driver].
func (d *Driver) Release(ctx context.Context, l driver.LeaseRef) error {
	return d.inner.Release(ctx, l)
}

// Break implements [driver.LeaseBreaker].
func (d *Driver) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	return d.inner.Break(ctx, name, fence, delay, by)
}

// RaiseFence implements [driver.FenceRaiser].
func (d *Driver) RaiseFence(ctx context.Context, l driver.LeaseRef, fence uint64) (uint64, error) {
	return d.inner.RaiseFence(ctx, l, fence)
}

// Inspect implements [driver.Driver].
func (d *Driver) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	return d.inner.Inspect(ctx, name)
}

// List implements [driver.Lister].
func (d *Driver) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	return d.inner.List(ctx, prefix)
}

// Listen implements [driver.Signaler].
func (d *Driver) Listen(f func(driver.Signal)) (stop func()) {
	return d.inner.Listen(f)
}

// Watch implements [driver.Watcher].
func (d *Driver) Watch(name string, f func()) (stop func()) {
	return d.inner.Watch(name, f)
}

// Properties implements [driver.Driver].
func (d *Driver) Properties() driver.Properties {
	return d.inner.Properties()
}

// Close implements [driver.Driver].
func (d *Driver) Close() error {
	return d.inner.Close()
}
