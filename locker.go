package pawl

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// A Locker is one way to lock a name: as a reader, as the writer, or with a number of
// permits. [RWMutex.Reader], [RWMutex.Writer] and [Semaphore.Permits] return one. It
// costs nothing until it is used, and many goroutines may use it.
type Locker struct {
	lock
	weight, limit int
	bad           error // why it can never be acquired
}

// A Part is a lock among several that [All] acquires together: a *[Mutex] or a *[Locker].
type Part interface{ part() *Locker }

func (l *Locker) part() *Locker { return l }

func (m *Mutex) part() *Locker {
	if m == nil {
		return nil
	}
	return &Locker{lock: m.lock, weight: driver.Exclusive, limit: driver.Unlimited}
}

// Lock waits until the lock is granted. See [Mutex.Lock] for ctx and errors.
func (l *Locker) Lock(ctx context.Context) (*Lease, error) { return l.as(ctx, waiting) }

// TryLock makes one attempt and does not wait. Its error matches ErrHeld if others hold
// what this lock needs, or wait for it.
func (l *Locker) TryLock(ctx context.Context) (*Lease, error) { return l.as(ctx, trying) }

// Do runs f under the lock. See [Mutex.Do].
func (l *Locker) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return doUnder(ctx, l.Lock, f)
}

// TryDo runs f under the lock, without waiting, and reports whether it ran. See
// [Mutex.TryDo].
func (l *Locker) TryDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	return tryUnder(ctx, l.TryLock, f)
}

func (l *Locker) as(ctx context.Context, how mode) (*Lease, error) {
	if l == nil {
		return nil, errNotMade
	}
	if l.bad != nil {
		return nil, l.bad
	}
	return l.acquire(ctx, l.weight, l.limit, how)
}
