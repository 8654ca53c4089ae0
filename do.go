package pawl

import (
	"context"
	"errors"
)

// doUnder acquires a lease and runs f under it.
func doUnder(ctx context.Context, acquire func(ctx context.Context) (*Lease, error), f func(ctx context.Context) error) error {
	if f == nil {
		return errNoFunction
	}
	lease, err := acquire(ctx)
	_, err = do(ctx, lease, err, f)
	return err
}

// tryUnder is doUnder for TryDo: a lock that others hold is no error.
func tryUnder(ctx context.Context, try func(ctx context.Context) (*Lease, error), f func(ctx context.Context) error) (ran bool, err error) {
	if f == nil {
		return false, errNoFunction
	}
	lease, err := try(ctx)
	if errors.Is(err, ErrHeld) {
		return false, nil
	}
	return do(ctx, lease, err, f)
}

// do runs f under a lease that was just acquired, and releases the lease whether f
// returns, panics, or ends its goroutine. It reports whether f ran.
func do(ctx context.Context, lease *Lease, err error, f func(ctx context.Context) error) (ran bool, _ error) {
	if err != nil {
		return false, err
	}
	defer func() { _ = lease.close(ctx, nil, !ran) }() // usually the second release, with the same answer; panics go on
	if err := lease.Err(); err != nil {
		return false, err
	}
	functions := lease.h.c.functions
	if !functions.enter() { // Shutdown has seen the lease end, and no longer waits for functions
		return false, ErrClosed
	}
	defer functions.leave()

	fctx, cancel := context.WithCancelCause(withFence(ctx, lease))
	defer cancel(nil)
	held := lease.Context()
	stop := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	defer stop()

	ran = true
	err = f(fctx)
	stop()
	cancel(nil) // goroutines that f left behind see the end of fctx before the name is free
	// The release may be the first to detect that the lease was lost. A release that the
	// backend did not confirm is no error of f.
	switch lost := lease.Release(ctx); {
	case !errors.Is(lost, ErrLost) || errors.Is(err, lost): // f may have returned the cause of its ctx's end
		return true, err
	case err == nil:
		return true, finished(lost)
	default:
		return true, errors.Join(err, lost)
	}
}

// finished returns a loss as one that was detected after the work.
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
// a lease's Context. It ignores leases on other names. It returns 0 and false if ctx runs
// under no lease on name; every check of fences refuses 0.
//
// Within a namespace, name is the name without the namespace. If ctx runs under leases of
// two namespaces on one name, FenceOf returns the fence of the innermost lease; use
// [Client.StoredName] to choose one. FenceOf returns 0 and false if the innermost lease
// is inside a namespace, and another lease has the name without a namespace. A name that
// begins with "@" and contains ":" is always the stored name.
//
// Under a [Once] with [WithUnorderedKeys], name is the result of [Once.LockName].
func FenceOf(ctx context.Context, name string) (fence uint64, ok bool) {
	if lease, ok := LeaseOf(ctx, name); ok {
		return lease.fence, true
	}
	return 0, false
}

// LeaseOf returns the lease whose fence [FenceOf] returns, or nil and false. It gives
// Confirm, SetValue and Err to a function that was not passed the lease. The caller that
// acquired the lease releases it.
func LeaseOf(ctx context.Context, name string) (lease *Lease, ok bool) {
	if ctx == nil {
		return nil, false
	}
	lease = leaseNamed(name, func(yield func(*Lease) bool) {
		for f, _ := ctx.Value(fenceKey{}).(*fenced); f != nil && yield(f.lease); f = f.outer {
		}
	})
	return lease, lease != nil
}
