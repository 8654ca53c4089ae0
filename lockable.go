package pawl

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// A Lockable is a lock of one name, for code that takes any kind of lock, and for [All].
// A *[Mutex] and a *[RWMutex], which is its writer, are Lockables. [RWMutex.RLocker] and
// [Semaphore.Permits] return one. It costs nothing until it is used. Many goroutines may
// use it. Only this package implements it.
type Lockable interface {
	// Lock waits until the lock is granted. See [Mutex.Lock] for ctx and errors.
	Lock(ctx context.Context) (*Lease, error)

	// TryLock makes one attempt and does not wait. Its error matches ErrHeld if others
	// hold what this lock needs, or wait for it.
	TryLock(ctx context.Context) (*Lease, error)

	// Do runs f under the lock. See [Mutex.Do].
	Do(ctx context.Context, f func(ctx context.Context) error) error

	// TryDo runs f under the lock, without waiting, and reports whether it ran. See
	// [Mutex.TryDo].
	TryDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error)

	locker() *locker // never nil, even of a typed nil
}

// A locker is a claim that can be made again and again: of the writer of a name, of a
// reader, or of a number of permits.
type locker struct {
	lock
	weight, limit int
	bad           error // why it can never be acquired
}

func (l *locker) locker() *locker { return l }

func (m *Mutex) locker() *locker {
	if m == nil {
		return &locker{bad: errNotMade}
	}
	return &locker{lock: m.lock, weight: driver.Exclusive, limit: driver.Unlimited}
}

// Lock implements Lockable.
func (l *locker) Lock(ctx context.Context) (*Lease, error) { return l.as(ctx, waiting) }

// TryLock implements Lockable.
func (l *locker) TryLock(ctx context.Context) (*Lease, error) { return l.as(ctx, trying) }

// Do implements Lockable.
func (l *locker) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return doUnder(ctx, l.Lock, f)
}

// TryDo implements Lockable.
func (l *locker) TryDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	return tryUnder(ctx, l.TryLock, f)
}

func (l *locker) as(ctx context.Context, how mode) (*Lease, error) {
	if l.bad != nil {
		return nil, l.bad
	}
	return l.acquire(ctx, l.weight, l.limit, how)
}
