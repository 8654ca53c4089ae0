package pawl

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl/driver"
)

// Semaphore is a lock of n permits. A claim takes one or more at once. It gets them when
// they are free and no claim waits ahead of it: claims for few permits do not pass a
// claim for many.
//
// n is this caller's own limit; it is not stored. Each claim counts what all others hold
// against its own n, so a rolling deployment can change n.
type Semaphore struct {
	lock
	n int
}

// Semaphore returns the semaphore of a name with n permits, 1 to 2147483646. See
// [Client.Mutex] for names.
func (c *Client) Semaphore(name string, n int, options ...LockOption) *Semaphore {
	return &Semaphore{c.lock(name, options), n}
}

// Permits returns k of the permits, 1 to n, as one lock: for its Do, and for [All].
func (s *Semaphore) Permits(k int) *Locker {
	if s == nil {
		return nil
	}
	return &Locker{s.lock, k, s.n, validatePermits(k, s.n)}
}

// Acquire waits until k permits, 1 to n, are granted as one lease. See [Mutex.Lock] for
// ctx and errors.
func (s *Semaphore) Acquire(ctx context.Context, k int) (*Lease, error) {
	return s.Permits(k).Lock(ctx)
}

// TryAcquire makes one attempt to get k permits. Its error matches ErrHeld if they are
// not free, or others wait.
func (s *Semaphore) TryAcquire(ctx context.Context, k int) (*Lease, error) {
	return s.Permits(k).TryLock(ctx)
}

// Do runs f with one permit. See [Mutex.Do].
func (s *Semaphore) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return s.Permits(1).Do(ctx, f)
}

// TryDo runs f with one permit, without waiting, and says whether it ran. See
// [Mutex.TryDo].
func (s *Semaphore) TryDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	return s.Permits(1).TryDo(ctx, f)
}

// validatePermits refuses what the SPI would take for another kind of lock, or for a
// claim that can never be granted.
func validatePermits(k, n int) error {
	switch {
	case n < 1 || n >= driver.Unlimited:
		return &InvalidError{What: "semaphore", Problem: fmt.Sprintf("has %d permits", n), Allowed: fmt.Sprintf("1 to %d", driver.Unlimited-1)}
	case k < 1 || k > n:
		return &InvalidError{What: fmt.Sprintf("%d permits", k), Problem: fmt.Sprintf("requested, the limit is %d", n), Allowed: fmt.Sprintf("1 to %d", n)}
	}
	return nil
}
