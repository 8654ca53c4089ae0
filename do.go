package pawl

import (
	"context"
	"errors"
)

// do runs f under a lease that was just acquired, and releases it whatever f does: returns, panics, or ends
// its goroutine.
func do(ctx context.Context, lease *Lease, err error, f func(ctx context.Context) error) error {
	if err != nil {
		return err
	}
	defer lease.Release(ctx) //nolint:errcheck // a lost lease is said below, a failing backend to the Observer

	fctx, cancel := context.WithCancelCause(context.WithValue(ctx, fenceKey{}, lease.Fence()))
	defer cancel(nil)
	held := lease.Context()
	stop := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	defer stop()

	err = f(fctx)
	if lost := lease.Err(); lost != nil {
		return errors.Join(err, lost)
	}
	return err
}

// fenceKey is where a context carries the fence of its lease.
type fenceKey struct{}

// FenceFromContext finds the fence of the lease under which ctx runs: inside Do, and in a lease's Context.
func FenceFromContext(ctx context.Context) (fence uint64, ok bool) {
	fence, ok = ctx.Value(fenceKey{}).(uint64)
	return fence, ok
}
