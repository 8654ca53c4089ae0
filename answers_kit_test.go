package pawl_test

import (
	"context"
	"slices"

	"github.com/pawl-go/pawl/driver"
)

// careless is a driver that answers what it should not.
type careless struct {
	*faulty
	acquire func(driver.Claim) (driver.Grant, error)
}

func (d *careless) Acquire(_ context.Context, c driver.Claim) (driver.Grant, error) {
	return d.acquire(c)
}

// forgetful is a driver whose answer to a renewal leaves out all the leases.
type forgetful struct{ *faulty }

func (f *forgetful) Renew(context.Context, []driver.LeaseRef) ([]error, error) { return nil, nil }

// stale is a driver that answers each lease of a renewal with an error, while it has one.
type stale struct {
	*faulty
	err error
}

func (s *stale) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	if s.err != nil {
		return slices.Repeat([]error{s.err}, len(leases)), nil //nolint:nilerr // it is the answer of each lease
	}
	return s.faulty.Renew(ctx, leases)
}

// examined is a backend with a doctor.
type examined struct {
	driver.Driver
	findings []driver.Finding
	err      error
}

func (e *examined) Diagnose(context.Context) ([]driver.Finding, error) { return e.findings, e.err }

// tokens is a driver that remembers the tokens it was shown.
type tokens struct {
	driver.Driver
	seen []driver.Token
}

func (d *tokens) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	d.seen = append(d.seen, c.Token)
	return d.Driver.Acquire(ctx, c)
}
