package pawl_test

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// gone is a backend that is down until it is up.
type gone struct {
	*faulty
	down     func(ctx context.Context) error
	up       atomic.Bool
	released atomic.Int64
}

func (g *gone) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if g.up.Load() {
		return g.faulty.Acquire(ctx, c)
	}
	return driver.Grant{}, g.down(ctx)
}

func (g *gone) Release(ctx context.Context, l driver.LeaseRef) error {
	g.released.Add(1)
	if g.up.Load() {
		return g.faulty.Release(ctx, l)
	}
	return g.down(ctx)
}

// dead is a backend that answers no renewal while it is dead.
type dead struct {
	*faulty
	down  func(context.Context)
	dead  atomic.Bool
	asked atomic.Int64
}

func (d *dead) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	d.asked.Add(1)
	if d.dead.Load() {
		d.down(ctx)
		return nil, errNet
	}
	return d.faulty.Renew(ctx, leases)
}

// hanging is a driver that does not answer a renewal if one of its leases hangs.
type hanging struct {
	*faulty
	hangs func(driver.LeaseRef) bool
	asked atomic.Int64
}

func (h *hanging) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	h.asked.Add(1)
	if slices.ContainsFunc(leases, h.hangs) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.faulty.Renew(ctx, leases)
}

// hang makes a client whose renewals hang for the names that begin with "hangs".
func (w *world) hang(o *pawl.Options) (*pawl.Client, *hanging) {
	w.t.Helper()
	h := &hanging{faulty: &faulty{Driver: w.memory.Driver()}, hangs: func(l driver.LeaseRef) bool { return l.Name[0] == 'h' }}
	c, err := pawl.New(h, o)
	noError(w.t, err)
	return c, h
}

// socket is a driver whose claims end at the deadline of their ctx with an error of the
// socket.
type socket struct{ *faulty }

func (s *socket) Acquire(ctx context.Context, _ driver.Claim) (driver.Grant, error) {
	deadline, _ := ctx.Deadline()
	time.Sleep(time.Until(deadline))
	return driver.Grant{}, os.ErrDeadlineExceeded
}

// timeoutError is the error by which a backend's client library says that a request took
// too long.
type timeoutError struct{ host string }

func (e *timeoutError) Error() string { return e.host + ": " + context.DeadlineExceeded.Error() }

func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }
