package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// rueidisClaimer uses rueidislock as its README says: a KeyMajority of 1 for one Redis,
// and NoLoopTracking from Redis 7.0.5 on. The library renews the lease, and cancels a ctx
// to notify the holder. WithContext gets a ctx without a deadline, because the library
// shortens the lease to the deadline.
type rueidisClaimer struct{ locker rueidislock.Locker }

func openRueidisClaimer(addr string, ttl time.Duration) (claimer, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}},
		KeyMajority:    1,
		KeyValidity:    ttl,
		NoLoopTracking: true,
	})
	return rueidisClaimer{l}, err
}

func (r rueidisClaimer) claim(ctx context.Context, name string, try bool) (worker.Lease, error) {
	leaseCtx, detach, end := newLeaseCtx(ctx)
	lock := r.locker.WithContext
	if try {
		lock = r.locker.TryWithContext
	}
	holding, release, err := lock(leaseCtx, name)
	switch {
	case errors.Is(err, rueidislock.ErrNotLocked):
		end()
		return nil, errHeld
	case err != nil:
		end()
		return nil, err
	case !detach():
		release()
		return nil, ctx.Err()
	}
	return ctxLease{holding, release}, nil
}

func (r rueidisClaimer) close() { r.locker.Close() }

// ctxLease is a lease that ends with its ctx.
type ctxLease struct {
	context.Context
	release func()
}

func (l ctxLease) Fence() uint64 { return 0 }

func (l ctxLease) Release(context.Context) error {
	err := l.Err()
	l.release()
	if err != nil {
		return errLost
	}
	return nil
}
