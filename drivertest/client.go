package drivertest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// client is a driver with the assertions of the tests. A failed assertion ends the test,
// so only the test's own goroutine may use them.
type client struct {
	driver.Driver
	k *kit
}

// Acquire records the claim, for the clean-up, and the time of the answer.
func (d *client) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	d.k.recordClaim(c)
	defer func() {
		if ctx.Err() == nil {
			d.k.lastAnswerAt.Store(int64(time.Since(d.k.began)))
		}
	}()
	return d.Driver.Acquire(ctx, c)
}

// wantGranted requires that Acquire grants the claim.
func (d *client) wantGranted(c driver.Claim) driver.Grant {
	d.k.Helper()
	g, err := d.Acquire(d.k.ctx, c)
	if err != nil {
		d.k.Fatalf("Acquire: %v; want it granted", err)
	}
	if g.Fence == 0 || g.Fences < 1 || g.TTL < c.TTL {
		d.k.Fatalf("Acquire = %+v; want a fence, a range of at least 1, and a TTL of at least %v", g, c.TTL)
	}
	return g
}

// wantHeld requires that Acquire refuses the claim with a HeldError.
func (d *client) wantHeld(c driver.Claim) *driver.HeldError {
	d.k.Helper()
	g, err := d.Acquire(d.k.ctx, c)
	var held *driver.HeldError
	switch {
	case err == nil:
		d.k.Fatalf("Acquire = %+v; want it refused", g)
	case !errors.Is(err, driver.ErrHeld) || !errors.As(err, &held):
		d.k.Fatalf("Acquire: %v (%T); want a *driver.HeldError", err, err)
	case g != driver.Grant{}:
		d.k.Fatalf("Acquire = %+v with the error %v; want no grant with it", g, err)
	case held.Name != c.Name:
		d.k.Fatalf("HeldError.Name = %q, want %q", held.Name, c.Name)
	}
	return held
}

// wantPlace requires that the claim is refused, with this place in the queue.
func (d *client) wantPlace(c driver.Claim, place int) *driver.HeldError {
	d.k.Helper()
	held := d.wantHeld(c)
	if held.Position != place {
		d.k.Fatalf("place %d in the queue, want %d", held.Position, place)
	}
	return held
}

// mustRelease releases a claim that holds or waits.
func (d *client) mustRelease(c driver.Claim) {
	d.k.Helper()
	if err := d.Release(d.k.ctx, lease(c)); err != nil {
		d.k.Fatalf("Release: %v; want nil", err)
	}
	d.k.claims.Delete(string(c.Token[:]) + c.Name)
}

// releaseWithMinHold releases the claim, and keeps its name held until minHold after the
// grant.
func (d *client) releaseWithMinHold(c driver.Claim, minHold time.Duration) {
	d.k.Helper()
	if err := d.Release(d.k.ctx, driver.LeaseRef{Name: c.Name, Token: c.Token, MinHold: minHold}); err != nil {
		d.k.Fatalf("Release with MinHold: %v; want nil", err)
	}
}

// wantNothingToRelease requires that the claim neither holds nor waits.
func (d *client) wantNothingToRelease(c driver.Claim) {
	d.k.Helper()
	if err := d.Release(d.k.ctx, lease(c)); !errors.Is(err, driver.ErrNoSuchLease) {
		d.k.Fatalf("Release: %v; want ErrNoSuchLease", err)
	}
}

// renew renews one lease, and returns its answer.
func (d *client) renew(c driver.Claim, newTTL time.Duration) error {
	d.k.Helper()
	answers := d.renewAll(driver.LeaseRef{Name: c.Name, Token: c.Token, TTL: newTTL})
	return answers[0]
}

// renewAll renews a batch, and requires an answer for each lease.
func (d *client) renewAll(leases ...driver.LeaseRef) []error {
	d.k.Helper()
	answers, err := d.Renew(d.k.ctx, leases)
	if err != nil {
		d.k.Fatalf("Renew: %v; want an answer per lease", err)
	}
	if len(answers) != len(leases) {
		d.k.Fatalf("Renew gave %d answers to %d leases", len(answers), len(leases))
	}
	return answers
}

// mustRenew renews the lease of a claim for its TTL.
func (d *client) mustRenew(c driver.Claim) {
	d.k.Helper()
	if err := d.renew(c, c.TTL); err != nil {
		d.k.Fatalf("Renew: %v; want it held", err)
	}
}

// wantLost requires that the claim has no lease.
func (d *client) wantLost(c driver.Claim) {
	d.k.Helper()
	if err := d.renew(c, c.TTL); !errors.Is(err, driver.ErrNoSuchLease) {
		d.k.Fatalf("Renew: %v; want ErrNoSuchLease", err)
	}
}

// entry reads one name.
func (d *client) entry(name string) driver.Entry {
	d.k.Helper()
	e, err := d.Inspect(d.k.ctx, name)
	if err != nil {
		d.k.Fatalf("Inspect(%q): %v", name, err)
	}
	return e
}

// wantHoldersWaiters requires these numbers of holders and waiters of the kit's name.
func (d *client) wantHoldersWaiters(holders, waiters int) driver.Entry {
	d.k.Helper()
	e := d.entry(d.k.name)
	if len(e.Holders) != holders || len(e.Waiters) != waiters {
		d.k.Fatalf("Inspect shows %d holders and %d waiters, want %d and %d: %+v", len(e.Holders), len(e.Waiters), holders, waiters, e)
	}
	return e
}

// wantFences requires exactly these fences of the kit's name, in the order of the grants.
func (d *client) wantFences(want ...uint64) {
	d.k.Helper()
	var got []uint64
	for _, h := range d.entry(d.k.name).Holders {
		got = append(got, h.Fence)
	}
	if !slices.Equal(got, want) {
		d.k.Fatalf("held with fences %d, want %d", got, want)
	}
}

// breakLease breaks the lease with this fence of the kit's name.
func (d *client) breakLease(fence uint64, delay time.Duration, by driver.Owner) error {
	d.k.Helper()
	return d.Driver.(driver.LeaseBreaker).Break(d.k.ctx, d.k.name, fence, delay, by)
}

// mustBreak breaks the lease with this fence.
func (d *client) mustBreak(fence uint64, delay time.Duration, by driver.Owner) {
	d.k.Helper()
	if err := d.breakLease(fence, delay, by); err != nil {
		d.k.Fatalf("Break: %v; want nil", err)
	}
}
