package cronlock

import (
	"context"

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
	m := l.locks.Mutex(l.o.Prefix+job, append([]pawl.LockOption{pawl.WithMinHold(l.o.MinHold)}, l.o.Lock...)...)
	var lease *pawl.Lease
	err := l.o.again(ctx, nil, func() (err error) {
		lease, err = m.TryLock(ctx)
		return err
	})
	if err != nil {
		l.o.Skipped(job, err)
		return nil, err
	}
	return unlocker{lease}, nil
}

type unlocker struct{ lease *pawl.Lease }

// Unlock implements gocron.Lock.
func (u unlocker) Unlock(ctx context.Context) error { return u.lease.Release(ctx) }

// Elector has all jobs of a gocron scheduler run on the instance that leads. A tick in
// the instant in which the lead changes may be run by neither instance, and where their
// clocks differ by both: where that must not be, use a locker or a [Job].
type Elector struct {
	election *pawl.Election
	o        Options
	ended    chan struct{}
}

// NewElector returns what gocron.WithDistributedElector takes. It campaigns in the
// background until ctx ends, which gives the lead to the next instance; wait for Done
// before the client is closed.
//
// Of the options, RetryFor and Skipped are heeded, and o may be nil. gocron does not tell
// an elector which job it asks for, so Skipped is told of "".
func NewElector(ctx context.Context, e *pawl.Election, o *Options) *Elector {
	el := &Elector{election: e, o: o.withDefaults(), ended: make(chan struct{})}
	go func() {
		defer close(el.ended)
		_ = e.Run(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	return el
}

// IsLeader implements gocron.Elector: it returns nil on the instance that leads, and
// otherwise what Err does. While the backend cannot be asked it waits, for as long as
// RetryFor says.
func (e *Elector) IsLeader(ctx context.Context) error {
	err := e.o.again(ctx, e.ended, e.Err)
	if err != nil {
		e.o.Skipped("", err)
	}
	return err
}

// Err says why this instance does not lead, as [pawl.Election.Err] does: it is nil while
// it leads. After Done it is why the elector campaigns no more.
func (e *Elector) Err() error { return e.election.Err() }

// Done is closed when the elector campaigns no more.
func (e *Elector) Done() <-chan struct{} { return e.ended }
