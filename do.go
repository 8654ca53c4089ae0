package pawl

import (
	"context"
	"errors"
	"slices"
)

// An anyLease is a *Lease or a *GroupLease.
type anyLease interface {
	Context() context.Context
	Err() error
	all() []*Lease
	end(ctx context.Context, unused bool) error
}

// lockAndDo acquires a lease and runs f under it.
func lockAndDo[L anyLease](ctx context.Context, acquire func(ctx context.Context) (L, error), f func(ctx context.Context) error) error {
	if f == nil {
		return errNoFunction
	}
	lease, err := acquire(ctx)
	_, err = do(ctx, lease, err, f)
	return err
}

// tryLockAndDo is lockAndDo for TryDo: a lock that others hold is no error.
func tryLockAndDo[L anyLease](ctx context.Context, try func(ctx context.Context) (L, error), f func(ctx context.Context) error) (ran bool, err error) {
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
func do[L anyLease](ctx context.Context, lease L, err error, f func(ctx context.Context) error) (ran bool, _ error) {
	if err != nil {
		return false, err
	}
	defer func() { _ = lease.end(ctx, !ran) }() // releases the lease if f does not run, or does not return
	if err := lease.Err(); err != nil {
		return false, err
	}
	leases, fctx := lease.all(), ctx
	for _, l := range leases {
		functions := l.h.c.functions
		if !functions.enter() { // Shutdown has seen the lease end, and no longer waits for functions
			return false, ErrClosed
		}
		defer functions.leave()
		fctx = withLease(fctx, l) //nolint:fatcontext // as deep as there are locks
	}
	fctx, cancel := context.WithCancelCause(fctx)
	defer cancel(nil)
	held := lease.Context()
	stop := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	defer stop()

	ran = true
	err = f(fctx)
	stop()
	cancel(nil) // goroutines that f started see the end of fctx before a name is free
	_ = lease.end(ctx, false)
	return true, withLosses(leases, err)
}

// withLosses adds the losses that the releases detected to the error of f. A release that
// the backend did not confirm is no error of f.
func withLosses(leases []*Lease, err error) error {
	all := []error{err}
	for _, lease := range leases {
		_, lost := lease.awaitFirstRelease()                   // without waiting, because the lease was released
		if !errors.Is(lost, ErrLost) || errors.Is(err, lost) { // f may have returned the cause of its ctx's end
			continue
		}
		if loss, ok := errors.AsType[*LostError](lost); ok && err == nil {
			finished := *loss
			finished.Finished = true
			lost = &finished
		}
		all = append(all, lost)
	}
	if all = slices.DeleteFunc(all, func(err error) bool { return err == nil }); len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}

// FenceOf returns the fence of the lease on name that ctx carries: the ctx of a function
// of Do, or a lease's Context. It ignores leases on other names. It returns 0 and false
// if ctx carries no lease on name; every check of fences refuses 0.
//
// Within a namespace, name is the name without the namespace. If ctx carries leases of
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

// LeaseOf returns the lease whose fence [FenceOf] returns, or nil and false. Use it to
// call Confirm, SetValue or Err in a function that was not passed the lease. The caller
// that acquired the lease releases it.
func LeaseOf(ctx context.Context, name string) (lease *Lease, ok bool) {
	if ctx == nil {
		return nil, false
	}
	lease = leaseNamed(name, func(yield func(*Lease) bool) {
		for f, _ := ctx.Value(ctxLeaseKey{}).(*ctxLease); f != nil && yield(f.lease); f = f.outer {
		}
	})
	return lease, lease != nil
}
