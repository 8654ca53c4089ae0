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
		return true, finished(lost)
	default:
		return true, errors.Join(err, lost)
	}
}

// finished is a loss that was found out after the work.
func finished(lost error) error {
	why, ok := errors.AsType[*LostError](lost)
	if !ok {
		return lost
	}
	after := *why
	after.Finished = true
	return &after
}

// FenceOf returns the fence of the lease on name under which ctx runs: inside Do, and in
// a lease's Context. Leases on other names around or inside it change nothing. It returns
// 0 and false if ctx runs under no lease on name; every check of fences refuses 0.
//
// In a namespace the name is as it is inside. If ctx runs under leases of two namespaces
// on one name, that is the innermost; [Client.StoredName] tells them apart.
//
// Under a [Once] with [WithUnorderedKeys], the name is what [Once.LockName] returns.
func FenceOf(ctx context.Context, name string) (fence uint64, ok bool) {
	if lease, ok := LeaseOf(ctx, name); ok {
		return lease.fence, true
	}
	return 0, false
}

// LeaseOf returns the lease of which [FenceOf] returns the fence, or nil and false: for
// its Confirm, its SetValue or its Err, in a function that was not given the lease. The
// caller that acquired the lease releases it.
func LeaseOf(ctx context.Context, name string) (lease *Lease, ok bool) {
	for f, _ := ctx.Value(fenceKey{}).(*fenced); f != nil; f = f.outer {
		if f.lease.called(name) {
			return f.lease, true
		}
	}
	return nil, false
}
