// Package gocronlock makes each job of gocron v2 run on one instance only. Package
// cronlock explains how, and what happens when clocks differ or the backend is down.
//
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(gocronlock.NewLocker(locks, nil)))
package gocronlock

import (
	"context"

	"github.com/go-co-op/gocron/v2"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cronlock"
)

// NewLocker returns a locker for gocron.WithDistributedLocker: a job runs on the instance
// that gets its lock first, and the others skip the run. o may be nil.
//
// gocron does not notify a job that its lock was lost. If the job must stop after a loss,
// call [pawl.Mutex.TryDo] in it.
func NewLocker(locks *pawl.Client, o *cronlock.Options) gocron.Locker {
	return locker{cronlock.NewLocker(locks, o)}
}

type locker struct{ jobs *cronlock.Locker }

// Lock implements gocron.Locker.
func (l locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	lease, err := l.jobs.Lock(ctx, job)
	if err != nil {
		return nil, err // nil, not an unlocker with a nil lease
	}
	return unlocker{lease}, nil
}

type unlocker struct{ lease *pawl.Lease }

// Unlock implements gocron.Lock.
func (u unlocker) Unlock(ctx context.Context) error { return u.lease.Release(ctx) }
