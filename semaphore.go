package pawl

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl/driver"
)

// Semaphore is a lock of n permits. A claim takes k of them, 1 to n, as one lease:
//
//   - Acquire waits for k permits, TryAcquire makes one attempt.
//   - Do waits for one permit and runs a function, TryDo makes one attempt.
//   - Permits(k) is k permits as one lock, with Lock, TryLock, Do and TryDo, and for
//     [All].
//
// A claim gets its permits when k are free and no claim waits ahead of it: claims for few
// permits do not pass a claim for many. Its lease gives all of them back together: see
// [Lease.Release].
//
// n is this caller's own limit; the backend does not store it. Each claim counts the
// permits of all holders against its own n, so a rolling deployment can change n.
type Semaphore struct {
	lock
	n int
}

// Semaphore returns the semaphore of a name with n permits, 1 to 2147483646. See
// [Client.Mutex] for names.
func (c *Client) Semaphore(name string, n int, options ...LockOption) *Semaphore {
	return &Semaphore{c.lock(name, options), n}
}

// Permits returns k permits, 1 to n, as one lock: for its Do, and for [All].
func (s *Semaphore) Permits(k int) Lockable { return s.permits(k) }

func (s *Semaphore) permits(k int) *locker {
	if s == nil {
		return &locker{invalidErr: errNotMade}
	}
	return &locker{s.lock, k, s.n, validatePermits(k, s.n)}
}

// Acquire waits until k permits, 1 to n, are granted as one lease. See [Mutex.Lock] for
// ctx and errors.
func (s *Semaphore) Acquire(ctx context.Context, k int) (*Lease, error) {
	return s.permits(k).Lock(ctx)
}

// TryAcquire makes one attempt to get k permits, 1 to n, as one lease. Its error matches
// ErrHeld if k permits are not free, or others wait.
func (s *Semaphore) TryAcquire(ctx context.Context, k int) (*Lease, error) {
	return s.permits(k).TryLock(ctx)
}

// Do waits for one permit and runs f with it. See [Mutex.Do]. For more permits use
// Permits(k).Do.
func (s *Semaphore) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return s.permits(1).Do(ctx, f)
}

// TryDo runs f with one permit, without waiting, and reports whether f ran. See
// [Mutex.TryDo].
func (s *Semaphore) TryDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	return s.permits(1).TryDo(ctx, f)
}

// validatePermits refuses numbers that the driver would take for another kind of lock, or
// for a claim that can never be granted.
func validatePermits(k, n int) error {
	switch {
	case n < 1 || n >= driver.Unlimited:
		return invalid("semaphore", fmt.Sprintf("has %d permits", n), fmt.Sprintf("1 to %d", driver.Unlimited-1))
	case k < 1 || k > n:
		return invalid(fmt.Sprintf("%d permits", k), fmt.Sprintf("requested, the limit is %d", n), fmt.Sprintf("1 to %d", n))
	}
	return nil
}
