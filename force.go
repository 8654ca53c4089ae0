package pawl

import "context"

// ForceLock takes the lock from its holder, ahead of every waiter, in one step. The
// backend notifies the holder afterwards, too late to stop before this lease begins: only
// the fence protects what the holder writes.
//
// Until that notice, the holder's client may pass its lease on to its own waiters, with a
// smaller fence. It does so only within HandoffWindow (see [Options]) of its grant.
//
// If the backend does not answer, ForceLock retries for as long as one request may last,
// Options.RequestTimeout. The error matches ErrUnavailable, ErrInvalid or ErrClosed, or
// is ctx's own. After an error the lock is not taken later, with one exception: after ctx
// was cancelled, the backend may still grant the lock within that time, and the client
// then releases it.
func (m *Mutex) ForceLock(ctx context.Context) (*Lease, error) {
	return m.lockAs(ctx, forcing) // the backend's step for a claim with Force is Entry.Acquire in locktable
}

// ForceLock takes the lock from all its holders, as a writer. See [Mutex.ForceLock].
func (m *RWMutex) ForceLock(ctx context.Context) (*Lease, error) { return m.writer().ForceLock(ctx) }
