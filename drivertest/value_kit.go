package drivertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// value returns an option that sets the value of the name from the grant on.
func value(v string) option { return func(c *driver.Claim) { c.Value = []byte(v) } }

// valueBelow sets the condition that the value is below v.
func valueBelow(v string) option { return func(c *driver.Claim) { c.ValueBelow = []byte(v) } }

// risingValue sets the value v, and the condition that the present value is below v.
func risingValue(v string) option {
	return func(c *driver.Claim) { c.Value, c.ValueBelow = []byte(v), []byte(v) }
}

// withValue returns the lease of a claim, for a renewal or a release with a value.
func withValue(c driver.Claim, v string) driver.LeaseRef {
	l := lease(c)
	l.Value = []byte(v)
	return l
}

// mustAcquire acquires the claim with the first client, and returns it.
func (k *kit) mustAcquire(c driver.Claim) driver.Claim {
	k.Helper()
	k.a.wantGranted(c)
	return c
}

// wantValue requires this value of the kit's name, written with this fence; 0 means any
// fence.
func (d *client) wantValue(v string, fence uint64) driver.Entry {
	d.k.Helper()
	return d.wantValueOf(d.k.name, v, fence)
}

func (d *client) wantValueOf(name, v string, fence uint64) driver.Entry {
	d.k.Helper()
	e := d.entry(name)
	if e.Value == nil || string(e.Value) != v || fence != 0 && e.ValueFence != fence {
		d.k.Fatalf("the value is %q (none: %v), of fence %d; want %q, of %d", e.Value, e.Value == nil, e.ValueFence, v, fence)
	}
	return e
}

// wantValueNotBelow requires that the claim is refused because of the value of its name.
func (d *client) wantValueNotBelow(c driver.Claim, v string) *driver.ValueNotBelowError {
	d.k.Helper()
	g, err := d.Acquire(d.k.ctx, c)
	var refused *driver.ValueNotBelowError
	if !errors.As(err, &refused) || !errors.Is(err, driver.ErrValueNotBelow) || errors.Is(err, driver.ErrHeld) || g != (driver.Grant{}) {
		d.k.Fatalf("Acquire = %+v, %v (%T); want a *driver.ValueNotBelowError", g, err, err)
	}
	if refused.Name != c.Name || string(refused.Value) != v || refused.Value == nil {
		d.k.Fatalf("refused with %+v; want the name %q and the value %q", refused, c.Name, v)
	}
	return refused
}

// mustRenewWith renews a lease with its value.
func (d *client) mustRenewWith(l driver.LeaseRef) {
	d.k.Helper()
	if err := d.renewAll(l)[0]; err != nil {
		d.k.Fatalf("Renew: %v; want it held", err)
	}
}

// mustReleaseWith releases a lease with its value.
func (d *client) mustReleaseWith(l driver.LeaseRef) {
	d.k.Helper()
	if err := d.Release(d.k.ctx, l); err != nil {
		d.k.Fatalf("Release: %v; want nil", err)
	}
}

func (s *slowClient) renewCall(l driver.LeaseRef) *call {
	return s.newCall("Renew", func(ctx context.Context) error {
		_, err := s.Renew(ctx, []driver.LeaseRef{l})
		return err
	})
}

func (s *slowClient) releaseCall(l driver.LeaseRef) *call {
	return s.newCall("Release", func(ctx context.Context) error { return s.Release(ctx, l) })
}

// awaitRetry waits for a SignalRetry for the claim, or for all claims.
func (l *listener) awaitRetry(c driver.Claim) {
	l.k.Helper()
	missing := l.k.afterSignalTimeout()
	for {
		select {
		case s := <-l.signals:
			if s.Kind == driver.SignalRetry && (s.Token == c.Token || s.Token.IsZero()) {
				return
			}
		case <-missing:
			l.k.failMissing("no SignalRetry arrived")
		}
	}
}

// inParallel runs f in n goroutines.
func (k *kit) inParallel(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// acquireUntilAnswered repeats the claim until the answer is not a HeldError.
func (k *kit) acquireUntilAnswered(d *client, c driver.Claim) (fence uint64, err error) {
	for {
		g, err := d.Acquire(k.ctx, c)
		if !errors.Is(err, driver.ErrHeld) {
			return g.Fence, err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-k.ctx.Done():
			return 0, k.ctx.Err()
		}
	}
}
