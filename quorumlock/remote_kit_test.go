package quorumlock_test

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/quorumlock"
)

// remote is a connection to a node in which requests can be held up: the call returns
// when its ctx ends, and the request still arrives. So the node looks whether its end has
// passed.
type remote struct {
	engine.Driver
	now  func() time.Time // the node's clock
	over *drivertest.Network
}

// through opens a quorum of connections on the suite's network.
func through(t testing.TB, n *drivertest.Network, servers []*memlock.Memory, clocks []func() time.Time, o *quorumlock.Options) *quorumlock.Driver {
	t.Helper()
	var nodes []driver.Driver
	for i, s := range servers {
		nodes = append(nodes, &remote{engine.Full(s.Driver()), clocks[i], n})
	}
	d, err := concrete(quorumlock.New(nodes, o))
	noError(t, err)
	return d
}

// arrive sends a request.
func arrive[T any](ctx context.Context, r *remote, ends bool, do func(ctx context.Context) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	end := r.now().Add(time.Until(driver.End(ctx)))
	arrives, err := r.over.Send()
	if err != nil {
		return none, &driver.Error{Backend: "memory", Op: "send", Err: err}
	}
	served := do
	do = func(ctx context.Context) (T, error) {
		v, err := served(ctx)
		if lost := r.over.Answer(); lost != nil {
			return none, &driver.Error{Backend: "memory", Op: "receive", Err: lost}
		}
		return v, err
	}
	select {
	case <-arrives:
		return do(ctx)
	default:
	}
	type answer struct {
		v   T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		<-arrives
		if ends && !r.now().Before(end) {
			done <- answer{none, &driver.Error{Backend: "memory", Op: "end", Err: context.DeadlineExceeded}}
			return
		}
		v, err := do(context.WithoutCancel(ctx))
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func (r *remote) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return arrive(ctx, r, true, func(ctx context.Context) (driver.Grant, error) { return r.Driver.Acquire(ctx, c) })
}

func (r *remote) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	writes := slices.ContainsFunc(leases, func(l driver.LeaseRef) bool { return l.Value != nil })
	return arrive(ctx, r, writes, func(ctx context.Context) ([]error, error) { return r.Driver.Renew(ctx, leases) })
}

func (r *remote) Release(ctx context.Context, l driver.LeaseRef) error {
	_, err := arrive(ctx, r, l.OnTime || l.Value != nil, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, r.Driver.Release(ctx, l)
	})
	return err
}

func (r *remote) RaiseFence(ctx context.Context, l driver.LeaseRef, f uint64) (uint64, error) {
	return arrive(ctx, r, false, func(ctx context.Context) (uint64, error) { return r.Driver.RaiseFence(ctx, l, f) })
}

func (r *remote) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	return arrive(ctx, r, false, func(ctx context.Context) (driver.Entry, error) { return r.Driver.Inspect(ctx, name) })
}

func (r *remote) Break(ctx context.Context, name string, f uint64, d time.Duration, by driver.Owner) error {
	_, err := arrive(ctx, r, false, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, r.Driver.Break(ctx, name, f, d, by)
	})
	return err
}

func (r *remote) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		if _, err := r.Inspect(ctx, "any"); err != nil {
			yield(driver.Entry{}, err)
			return
		}
		r.Driver.List(ctx, prefix)(yield)
	}
}
