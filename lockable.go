package pawl

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// A Lockable is a lock of one name, for code that takes any kind of lock, and for [All].
// A *[Mutex] is a Lockable, and so is a *[RWMutex], as its writer. [RWMutex.RLocker] and
// [Semaphore.Permits] return a Lockable. A Lockable costs nothing until it is used. Many
// goroutines may use it. Only this package implements it.
type Lockable interface {
	// Lock waits until the lock is granted. See [Mutex.Lock] for ctx and errors.
	Lock(ctx context.Context) (*Lease, error)

	// TryLock makes one attempt and does not wait. Its error matches ErrHeld if others
	// hold what this lock needs, or wait for it.
	TryLock(ctx context.Context) (*Lease, error)

	// Do runs f under the lock. See [Mutex.Do].
	Do(ctx context.Context, f func(ctx context.Context) error) error

	// TryDo runs f under the lock, without waiting, and reports whether f ran. See
	// [Mutex.TryDo].
	TryDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error)

	locker() *locker // never nil, even for a nil *Mutex
}

// A locker makes one kind of claim on a name again and again: as a writer, as a reader,
// or for a number of permits.
type locker struct {
	lock
	weight, limit int
	invalidErr    error // the error of each claim if the lock is invalid, or nil
}

func (l *locker) locker() *locker { return l }

func (m *Mutex) locker() *locker {
	if m == nil {
		return &locker{invalidErr: errNotMade}
	}
	return &locker{lock: m.lock, weight: driver.Exclusive, limit: driver.Unlimited}
}

func (l *locker) Lock(ctx context.Context) (*Lease, error) { return l.lockAs(ctx, waiting) }

func (l *locker) TryLock(ctx context.Context) (*Lease, error) { return l.lockAs(ctx, trying) }

func (l *locker) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return lockAndDo(ctx, l.Lock, f)
}

func (l *locker) TryDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	return tryLockAndDo(ctx, l.TryLock, f)
}

func (l *locker) lockAs(ctx context.Context, how mode) (*Lease, error) {
	if l.invalidErr != nil {
		return nil, l.invalidErr
	}
	return l.acquire(ctx, l.weight, l.limit, how)
}
