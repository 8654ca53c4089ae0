package pawl

import (
	"context"
	"errors"
)

// doUnder acquires a lease and runs f under it.
func doUnder(ctx context.Context, acquire func(ctx context.Context) (*Lease, error), f func(ctx context.Context) error) (ran bool, err error) {
	if f == nil {
		return false, errNoFunction
	}
	lease, err := acquire(ctx)
	return do(ctx, lease, err, f)
}

// do runs f under a lease that was just acquired, and releases it whatever f does:
// returns, panics, or ends its goroutine. It says whether f ran.
func do(ctx context.Context, lease *Lease, err error, f func(ctx context.Context) error) (ran bool, _ error) {
	if err != nil {
		return false, err
	}
	defer lease.Release(ctx) //nolint:errcheck // mostly it is the second, and answers the same; a panic goes on
	if err := lease.Err(); err != nil {
		return false, err
	}
	functions := lease.h.c.functions
	if !functions.enter() { // Shutdown has seen the lease end, and waits for functions no more
		return false, ErrClosed
	}
	defer functions.leave()

	fctx, cancel := context.WithCancelCause(withFence(ctx, lease))
	defer cancel(nil)
	held := lease.Context()
	stop := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	defer stop()

	err = f(fctx)
	stop()
	cancel(nil) // what f left behind hears it before the name is free
	// Only here it may be found out that the lease was lost. That the backend could not
	// be told is no error of f's.
	switch lost := lease.Release(ctx); {
	case !errors.Is(lost, ErrLost) || errors.Is(err, lost): // f may have returned the cause of its ctx's end
		return true, err
	case err == nil:
		return true, lost
	default:
		return true, errors.Join(err, lost)
	}
}

// FenceFromContext returns the fence of the lease under which ctx runs: inside Do, and in
// a lease's Context. Where leases are nested it is that of the innermost; see [FenceOf].
func FenceFromContext(ctx context.Context) (fence uint64, ok bool) {
	if f, ok := ctx.Value(fenceKey{}).(*fenced); ok {
		return f.lease.fence, true
	}
	return 0, false
}

// LeaseFromContext returns the lease under which ctx runs, of which FenceFromContext
// returns the fence: for its Confirm, its SetValue, or its Err, where a function was
// called under a lock and not given the lease. Whoever called it releases it.
func LeaseFromContext(ctx context.Context) (lease *Lease, ok bool) {
	if f, ok := ctx.Value(fenceKey{}).(*fenced); ok {
		return f.lease, true
	}
	return nil, false
}

// FenceOf is FenceFromContext for one name: it returns the fence of the lease on name
// under which ctx runs, whatever other leases were acquired inside of it. It returns
// false if there is none.
func FenceOf(ctx context.Context, name string) (fence uint64, ok bool) {
	for f, _ := ctx.Value(fenceKey{}).(*fenced); f != nil; f = f.outer {
		if f.lease.Name() == name {
			return f.lease.fence, true
		}
	}
	return 0, false
}
