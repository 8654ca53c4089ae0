package quorumlock_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/quorumlock"
)

// remote is a connection to a node in which requests can be held up: the call returns
// when its ctx ends, and the request still arrives. So the node looks whether its end has
// passed.
type remote struct {
	*locktable.Driver
	now  func() time.Time // the node's clock
	gate *gate
}

// A gate holds up what comes while it is shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed to let go
}

func (g *gate) hold() (letGo func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	shut := make(chan struct{})
	g.shut = shut
	return func() {
		g.mu.Lock()
		g.shut = nil
		g.mu.Unlock()
		close(shut)
	}
}

// heldUp opens a quorum of connections that can be held up.
func heldUp(t testing.TB, servers []*memlock.Memory, clocks []func() time.Time, o *quorumlock.Options) (*quorumlock.Driver, func() func()) {
	t.Helper()
	g := &gate{}
	var nodes []driver.Driver
	for i, s := range servers {
		nodes = append(nodes, &remote{s.Driver(), clocks[i], g})
	}
	d, err := quorumlock.New(nodes, o)
	if err != nil {
		t.Fatal(err)
	}
	return d, g.hold
}

// arrive sends a request.
func arrive[T any](ctx context.Context, r *remote, ends bool, do func(ctx context.Context) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	end := r.now().Add(time.Until(driver.End(ctx)))
	r.gate.mu.Lock()
	shut := r.gate.shut
	r.gate.mu.Unlock()
	if shut == nil {
		return do(ctx)
	}
	type answer struct {
		v   T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		<-shut
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
