package pawl

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// RWMutex is a lock that one writer or any number of readers have at a time. It is fair: a reader that comes
// after a waiting writer waits behind it, so writers do not starve, nor do readers.
type RWMutex struct{ lock }

// RWMutex names a read/write lock. See [Client.Mutex] for names.
func (c *Client) RWMutex(name string, options ...Option) *RWMutex {
	return &RWMutex{c.lock(name, options)}
}

// Lock waits until it is granted for writing. See [Mutex.Lock] for ctx and errors.
func (m *RWMutex) Lock(ctx context.Context) (*Lease, error) { return m.writer().Lock(ctx) }

// TryLock makes one attempt to get it for writing: ErrHeld if others hold it or wait for it.
func (m *RWMutex) TryLock(ctx context.Context) (*Lease, error) { return m.writer().TryLock(ctx) }

// RLock waits until it is granted for reading, beside other readers.
func (m *RWMutex) RLock(ctx context.Context) (*Lease, error) {
	return m.acquire(ctx, 1, driver.Unlimited, waiting)
}

// TryRLock makes one attempt to get it for reading.
func (m *RWMutex) TryRLock(ctx context.Context) (*Lease, error) {
	return m.acquire(ctx, 1, driver.Unlimited, trying)
}

// ForceLock takes it for writing from whoever holds it. See [Mutex.ForceLock].
func (m *RWMutex) ForceLock(ctx context.Context) (*Lease, error) { return m.writer().ForceLock(ctx) }

// Do runs f as the writer. See [Mutex.Do].
func (m *RWMutex) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return m.writer().Do(ctx, f)
}

// TryDo runs f as the writer, without waiting, and says whether it ran. See [Mutex.TryDo].
func (m *RWMutex) TryDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	return m.writer().TryDo(ctx, f)
}

// RDo runs f as a reader. See [Mutex.Do].
func (m *RWMutex) RDo(ctx context.Context, f func(ctx context.Context) error) error {
	lease, err := m.RLock(ctx)
	_, err = do(ctx, lease, err, f)
	return err
}

// TryRDo runs f as a reader, without waiting, and says whether it ran. See [Mutex.TryDo].
func (m *RWMutex) TryRDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	lease, err := m.TryRLock(ctx)
	return do(ctx, lease, err, f)
}

// writer is the writing side as a lock of its own.
func (m *RWMutex) writer() *Mutex { return &Mutex{m.lock} }
