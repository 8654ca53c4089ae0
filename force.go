package pawl

import "context"

// ForceLock takes the lock from its holder, ahead of every waiter, in one step. The
// holder learns of it only afterwards, so it may still work when this lease begins. Only
// the fence protects what the old holder writes.
//
// Until the old holder learns of it, its client may pass the old lease on to its own
// waiters, with smaller fences than this lease has. The client does so for at most
// HandoffWindow (see [Options]) after the old lease was granted.
//
// If the backend does not answer, ForceLock retries for as long as one request may last,
// Options.RequestTimeout. The error matches ErrUnavailable, ErrInvalid or ErrClosed, or
// is ctx's own. After an error the lock is not taken later, with one exception: after ctx
// was cancelled, the backend may still grant the lock within RequestTimeout, and the
// client then releases it.
func (m *Mutex) ForceLock(ctx context.Context) (*Lease, error) {
	return m.lockAs(ctx, forcing) // the backend's step for a claim with Force is Entry.Acquire in locktable
}

// ForceLock takes the lock from all its holders, as a writer. See [Mutex.ForceLock].
func (m *RWMutex) ForceLock(ctx context.Context) (*Lease, error) { return m.writer().ForceLock(ctx) }
