package cronlock

import (
	"context"

	"github.com/pawl-go/pawl"
)

// Locker locks each run of a job by the job's name: the instance that gets the lock first
// runs the job, and the others skip it. For gocron, use package gocronlock.
type Locker struct {
	locks *pawl.Client
	o     Options
}

// NewLocker returns a locker. o may be nil.
func NewLocker(locks *pawl.Client, o *Options) *Locker { return &Locker{locks, o.withDefaults()} }

// Lock makes one attempt, and retries for Options.RetryFor while the backend does not
// answer. An error means that the run is skipped, and that Lock has called
// Options.Skipped. After the lease is released, the name stays held for the rest of
// Options.MinHold.
func (l *Locker) Lock(ctx context.Context, job string) (*pawl.Lease, error) {
	m := l.locks.Mutex(l.o.Prefix+job, append([]pawl.LockOption{pawl.WithMinHold(l.o.MinHold)}, l.o.Lock...)...)
	var lease *pawl.Lease
	err := l.o.retry(ctx, nil, func() (err error) {
		lease, err = m.TryLock(ctx)
		return err
	})
	if err != nil {
		l.o.Skipped(job, err)
		return nil, err
	}
	return lease, nil
}
