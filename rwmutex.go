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

// Reader returns the lock of a reader, for [All].
func (m *RWMutex) Reader() *Locker {
	if m == nil {
		return nil
	}
	return &Locker{lock: m.lock, weight: 1, limit: driver.Unlimited}
}

// Writer returns the lock of a writer, for [All].
func (m *RWMutex) Writer() *Locker { return m.writer().part() }

// Lock waits for the lock as a writer. See [Mutex.Lock] for ctx and errors.
func (m *RWMutex) Lock(ctx context.Context) (*Lease, error) { return m.writer().Lock(ctx) }

// TryLock makes one attempt as a writer. Its error matches ErrHeld if others hold the
// lock or wait for it.
func (m *RWMutex) TryLock(ctx context.Context) (*Lease, error) { return m.writer().TryLock(ctx) }

// RLock waits for the lock as a reader. See [Mutex.Lock] for ctx and errors.
func (m *RWMutex) RLock(ctx context.Context) (*Lease, error) {
	return m.Reader().Lock(ctx)
}

// TryRLock makes one attempt as a reader. Its error matches ErrHeld if a writer holds the
// lock, or others wait for it.
func (m *RWMutex) TryRLock(ctx context.Context) (*Lease, error) {
	return m.Reader().TryLock(ctx)
}

// Do runs f as a writer. See [Mutex.Do].
func (m *RWMutex) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return m.writer().Do(ctx, f)
}

// TryDo runs f as a writer, without waiting, and reports whether it ran. See
// [Mutex.TryDo].
func (m *RWMutex) TryDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	return m.writer().TryDo(ctx, f)
}

// RDo runs f as a reader. See [Mutex.Do].
func (m *RWMutex) RDo(ctx context.Context, f func(ctx context.Context) error) error {
	return m.Reader().Do(ctx, f)
}

// TryRDo runs f as a reader, without waiting, and reports whether it ran. See
// [Mutex.TryDo].
func (m *RWMutex) TryRDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	return m.Reader().TryDo(ctx, f)
}

// writer is the writing side as a mutex.
func (m *RWMutex) writer() *Mutex {
	if m == nil {
		return nil
	}
	return &Mutex{m.lock}
}
