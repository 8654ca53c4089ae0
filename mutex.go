package pawl

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// Mutex is a lock that one holder has at a time, among all clients of the backend. It is made by
// [Client.Mutex], costs nothing until it is used, and may be used by many goroutines: each Lock is a lease of
// its own. It is not reentrant: who holds it and locks it again waits for itself; pass the Lease instead.
type Mutex struct{ lock }

// Mutex names a mutex. A name is 1 to 255 bytes of UTF-8 without control characters; a wrong one is said by
// Lock. All kinds of locks share one name space: a mutex on "x" excludes the readers and permits of "x" too.
func (c *Client) Mutex(name string, options ...Option) *Mutex { return &Mutex{c.lock(name, options)} }

// Lock waits until the lock is granted, first come, first served.
//
// ctx bounds the wait, and nothing else: the lease lives on until Release, or until it is lost. A wait that
// ctx ends leaves nothing behind; its error Is ctx's, and ErrHeld too when a deadline ended it and others
// held the lock. Other errors: ErrInvalid, ErrClosed, and ErrUnavailable when the backend failed for longer
// than Options.RetryFor.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) {
	return m.acquire(ctx, driver.Exclusive, driver.Unlimited, waiting)
}

// TryLock makes one attempt and does not wait: ErrHeld if others hold the lock or wait for it.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) {
	return m.acquire(ctx, driver.Exclusive, driver.Unlimited, trying)
}

// ForceLock takes the lock from whoever holds it, past whoever waits for it, in one step. The holders hear of it
// as soon as the backend can tell them, which is too late to stop them before this lease begins: only the
// fence protects what they write.
//
// While the backend does not answer it is asked again, for as long as one request may last: after an error other than
// that of a cancelled ctx, nothing happens any more. If ctx is cancelled, the lock may still be taken from its holders
// within that time, and is then released.
func (m *Mutex) ForceLock(ctx context.Context) (*Lease, error) {
	return m.acquire(ctx, driver.Exclusive, driver.Unlimited, forcing)
}

// Do runs f under the lock, and releases it when f returns or panics. See [Mutex.Lock] for the wait.
//
// f's context is ctx, and also ends when the lease is lost; [FenceFromContext] finds the fence in it. The
// error is f's; if the lease was lost before it was released, it Is ErrLost too, for then others may have run
// beside f. A lease that is lost before f begins does not run it. A release that the backend could not confirm is
// not f's error: it is told to the Observer.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context) error) error {
	lease, err := m.Lock(ctx)
	_, err = do(ctx, lease, err, f)
	return err
}

// TryDo is Do without waiting. If f did not run, ran is false, and err says why: ErrHeld when others hold the lock
// or wait for it. If it ran, err is that of Do, whatever f's own error Is.
func (m *Mutex) TryDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	lease, err := m.TryLock(ctx)
	return do(ctx, lease, err, f)
}
