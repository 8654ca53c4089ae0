package doctest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// An importer is the code that is tested. It does its job under a lock, a step a minute,
// and stops between two steps when the lock is lost.
type importer struct {
	locks *pawl.Client
	steps int
}

func (i *importer) run(ctx context.Context) error {
	return i.locks.Mutex("import").Do(ctx, func(ctx context.Context) error {
		for range 10 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Minute):
				i.steps++
			}
		}
		return nil
	})
}

// clientOf is one more client of the locks of a test, as another process would have it.
func clientOf(t *testing.T, d driver.Driver) *pawl.Client {
	t.Helper()
	locks, err := pawl.New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// An outage is a backend that a test can take away.
type outage struct {
	driver.Driver
	down atomic.Bool
}

var errDown = errors.New("network down")

// Acquire implements driver.Driver.
func (o *outage) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if o.down.Load() {
		return driver.Grant{}, errDown
	}
	return o.Driver.Acquire(ctx, c)
}

// Renew implements driver.Driver.
func (o *outage) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	if o.down.Load() {
		return nil, errDown
	}
	return o.Driver.Renew(ctx, leases)
}
