package cronlock

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/pawl-go/pawl"
)

// NewLocker returns what gocron.WithDistributedLocker takes: a job runs on the instance
// that gets its lock first, and the others skip the run. o may be nil.
//
// gocron does not tell a job that its lock was lost; a job that must not go on then uses
// [pawl.Mutex.TryDo] itself.
func NewLocker(locks *pawl.Client, o *Options) gocron.Locker {
	return &locker{locks, o.withDefaults()}
}

type locker struct {
	locks *pawl.Client
	o     Options
}

// Lock implements gocron.Locker.
func (l *locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	m := l.locks.Mutex(l.o.Prefix+job, append([]pawl.Option{pawl.WithMinHold(l.o.MinHold)}, l.o.Lock...)...)
	var lease *pawl.Lease
	err := l.o.again(ctx, func() (err error) {
		lease, err = m.TryLock(ctx)
		return err
	})
	if err != nil {
		l.o.skipped(job, err)
		return nil, err
	}
	return unlocker{lease}, nil
}

type unlocker struct{ lease *pawl.Lease }

// Unlock implements gocron.Lock.
func (u unlocker) Unlock(ctx context.Context) error { return u.lease.Release(ctx) }

// Elector has all jobs of a gocron scheduler run on the instance that leads.
type Elector struct {
	lease atomic.Pointer[pawl.Lease] // while it leads
	ended chan struct{}
	err   error // why it campaigns no more; written before ended is closed
}

var errNotLeading = errors.New("pawl: this instance does not lead")

// NewElector returns what gocron.WithDistributedElector takes. It campaigns in the
// background until ctx ends, which gives the lead to the next instance; wait for Done
// before the client is closed.
func NewElector(ctx context.Context, e *pawl.Election) *Elector {
	el := &Elector{ended: make(chan struct{})}
	go func() {
		defer close(el.ended)
		el.err = e.Run(ctx, func(ctx context.Context) error {
			lease, _ := pawl.LeaseFromContext(ctx)
			el.lease.Store(lease)
			defer el.lease.Store(nil)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	return el
}

// IsLeader implements gocron.Elector: it returns nil on the instance that leads.
func (e *Elector) IsLeader(context.Context) error {
	select {
	case <-e.ended:
		return e.err
	default:
	}
	lease := e.lease.Load()
	if lease == nil {
		return errNotLeading
	}
	return lease.Err() // also when the process was paused, and has not heard of it
}

// Done is closed when the elector campaigns no more.
func (e *Elector) Done() <-chan struct{} { return e.ended }
