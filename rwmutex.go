package pawl

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// RWMutex is a lock that one writer, or any number of readers, hold at a time. It is
// fair: a reader that comes after a waiting writer waits behind it, so neither writers
// nor readers starve. Lock, TryLock, Do, TryDo and ForceLock are for a writer;
// RLock, TryRLock, RDo and TryRDo are for a reader.
type RWMutex struct{ lock }

// RWMutex returns the read/write lock of a name. See [Client.Mutex] for names.
func (c *Client) RWMutex(name string, options ...LockOption) *RWMutex {
	return &RWMutex{c.lock(name, options)}
}

// RLocker returns the reader as a Lockable, for [All]: its Lock is RLock, its Do is RDo,
// and so on. The RWMutex itself is the Lockable of the writer.
func (m *RWMutex) RLocker() Lockable { return m.reader() }

// Lock waits for the lock as a writer. See [Mutex.Lock] for ctx and errors.
func (m *RWMutex) Lock(ctx context.Context) (*Lease, error) { return m.writer().Lock(ctx) }

// TryLock makes one attempt as a writer. Its error matches ErrHeld if others hold the
// lock or wait for it.
func (m *RWMutex) TryLock(ctx context.Context) (*Lease, error) { return m.writer().TryLock(ctx) }

// RLock waits for the lock as a reader. See [Mutex.Lock] for ctx and errors.
func (m *RWMutex) RLock(ctx context.Context) (*Lease, error) { return m.reader().Lock(ctx) }

// TryRLock makes one attempt as a reader. Its error matches ErrHeld if a writer holds the
// lock, or others wait for it.
func (m *RWMutex) TryRLock(ctx context.Context) (*Lease, error) { return m.reader().TryLock(ctx) }

// Do runs f as a writer. See [Mutex.Do].
func (m *RWMutex) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return m.writer().Do(ctx, f)
}

// TryDo runs f as a writer, without waiting, and reports whether f ran. See
// [Mutex.TryDo].
func (m *RWMutex) TryDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	return m.writer().TryDo(ctx, f)
}

// RDo runs f as a reader. See [Mutex.Do].
func (m *RWMutex) RDo(ctx context.Context, f func(ctx context.Context) error) error {
	return m.reader().Do(ctx, f)
}

// TryRDo runs f as a reader, without waiting, and reports whether f ran. See
// [Mutex.TryDo].
func (m *RWMutex) TryRDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	return m.reader().TryDo(ctx, f)
}

// reader returns the locker of a reader.
func (m *RWMutex) reader() *locker {
	if m == nil {
		return &locker{invalidErr: errNotMade}
	}
	return &locker{lock: m.lock, weight: 1, limit: driver.Unlimited}
}

// writer returns the mutex that a writer locks.
func (m *RWMutex) writer() *Mutex { return (*Mutex)(m) }

func (m *RWMutex) locker() *locker { return m.writer().locker() }
