package fence

import (
	"context"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// Holders checks whether a lease holds its name at this moment, by asking the backend. It
// is for leases that are held at the same time: a permit may still be held when newer
// permits have much higher fences, so there is no highest fence to compare with. It also
// works for readers, writers and mutexes. Each check is a request. The resource must be
// the name of the lock.
//
// It is weaker than a fence that is compared in the same step as the write. Another
// client may break the lease, or take the name by force, between the check and the write.
// And Guard detects only after the write that a lease has ended meanwhile. If the locks
// are in the database that you write to, CheckLease of postgreslock, mysqllock and
// sqlitelock makes the same check inside of the transaction, without these gaps.
type Holders struct {
	Locks *pawl.Client // a client of the backend that has the locks
}

// Check returns the time for which the lease with this fence still holds its name,
// counted from before the call. A renewal makes that time longer, and a client may end
// the lease sooner. Check returns a [*StaleError] if the lease does not hold the name.
func (h Holders) Check(ctx context.Context, resource string, fence uint64) (left time.Duration, err error) {
	if err := validate(resource, fence); err != nil {
		return 0, err
	}
	e, err := h.Locks.Inspect(ctx, resource)
	if err != nil {
		return 0, err
	}
	for _, holder := range e.Holders {
		last := holder.Fence
		if holder.Permits == driver.Exclusive { // it may have a range of fences, and is the only holder
			last = max(last, e.Fence)
		}
		if holder.Fence <= fence && fence <= last && !holder.Released && holder.ExpiresIn > 0 {
			return holder.ExpiresIn, nil
		}
	}
	return 0, &StaleError{resource, fence, e.Fence}
}

// Guard runs write if the lease holds the name. The ctx of write ends when the lease
// would end without a renewal. If write succeeds after that, Guard checks the lease
// again. A [*StaleError] then means that others may have held the name during the write.
func (h Holders) Guard(ctx context.Context, resource string, fence uint64, write func(ctx context.Context) error) error {
	began := time.Now()
	left, err := h.Check(ctx, resource, fence)
	if err != nil {
		return err
	}
	end := began.Add(left)
	leaseCtx, cancel := context.WithDeadlineCause(ctx, end, &StaleError{Resource: resource, Fence: fence})
	defer cancel()
	if err := write(leaseCtx); err != nil || time.Now().Before(end) {
		return err
	}
	_, err = h.Check(ctx, resource, fence)
	return err
}

// GuardReader is like Guard.
func (h Holders) GuardReader(ctx context.Context, resource string, fence uint64, read func(ctx context.Context) error) error {
	return h.Guard(ctx, resource, fence, read)
}
