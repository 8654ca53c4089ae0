package pawl

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// Mutex is a lock that one holder has at a time, among all clients of the backend.
// [Client.Mutex] returns one. It costs nothing until it is used. Many goroutines may use
// it: each Lock is a lease of its own. It is not reentrant: locking it twice deadlocks.
// Pass the Lease instead.
type Mutex struct{ lock }

// Mutex returns the mutex of a name. A name is 1 to 255 bytes of UTF-8 without control
// characters; Lock returns ErrInvalid for a bad name. All kinds of locks share one name
// space: a mutex on "x" excludes the readers and permits of "x" too. A reader counts as
// one permit: readers and permits hold together as long as the semaphore has room.
func (c *Client) Mutex(name string, options ...LockOption) *Mutex {
	return &Mutex{c.lock(name, options)}
}

// Lock waits until the lock is granted. Processes take turns, first come, first served:
// see HandoffWindow in [Options].
//
// ctx bounds the wait and nothing else: the lease lives on until Release, or until it is
// lost. A wait that ctx ends leaves nothing behind. The error then matches ctx's, and
// also ErrHeld when a deadline ended the wait while others held the lock.
//
// Other errors match ErrInvalid, ErrClosed, or ErrUnavailable when the backend failed for
// longer than Options.RetryFor.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) { return m.lockAs(ctx, waiting) }

// TryLock makes one attempt and does not wait. Its error matches ErrHeld if others hold
// the lock or wait for it.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) { return m.lockAs(ctx, trying) }

// Do runs f under the lock and releases it when f returns or panics. It waits as
// [Mutex.Lock] does.
//
// f's context is ctx, and also ends when the lease is lost; [FenceOf] finds the fence in
// it. Do returns f's error. If the lease was lost before it was released, the error
// matches ErrLost too, because other holders may have run at the same time as f. If f
// returned nil, LostError.Finished is true: the work is done, and repeating it does it
// twice. A release that the backend did not confirm is no error; the client reports it to
// the Observer.
//
// If Do cannot begin, f does not run. The error is then an error of Lock, or matches
// ErrLost if the lease was lost before f began. Do does not say whether f ran: an error
// of f may match ErrHeld, and after a loss the error may match ErrUnavailable too. To
// know whether f ran, use TryDo, or let f set a variable.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return lockAndDo(ctx, m.Lock, f)
}

// TryDo is Do without waiting, for work that others may be doing already. It returns
// (false, nil) if others hold the lock or wait for it: f did not run, and nothing has
// failed. [Mutex.TryLock] says who they are. If ran is true, f ran, and err is the error
// of Do. Otherwise f did not run, and err is an error of TryLock, or matches ErrLost.
func (m *Mutex) TryDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	return tryLockAndDo(ctx, m.TryLock, f)
}

func (m *Mutex) lockAs(ctx context.Context, how mode) (*Lease, error) {
	if m == nil {
		return nil, errNotMade
	}
	return m.acquire(ctx, driver.Exclusive, driver.Unlimited, how)
}
