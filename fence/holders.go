package fence

import (
	"context"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// Holders checks whether a lease holds its name at this moment, by asking where the locks
// are. It is for what holds side by side: of the permits of a semaphore one with a much
// lower fence may hold beside the newest, so there is no highest one to compare with. For
// readers, writers and mutexes it is right, too. It costs a request, and a resource is
// the name of its lock.
//
// It is weaker than a fence that is compared in the same step as the write. The lease may
// be broken, or taken by force, between the two; and what is written after the lease has
// ended by itself is only found then. Where the locks are in the database that is written
// to, CheckLease of postgreslock, mysqllock and sqlitelock asks the same question inside
// of the transaction, and has neither gap.
type Holders struct {
	Locks *pawl.Client // has the locks, or a backend that it shares with those who hold
}

// Check returns for how long the lease with this fence holds its name at least, unless
// somebody ends it: counted from before the call, as if it was not renewed any more. It
// returns a [*StaleError] if the lease does not hold the name.
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
		if holder.Weight == driver.Exclusive { // it may have a range, and nobody holds beside it
			last = max(last, e.Fence)
		}
		if holder.Fence <= fence && fence <= last && !holder.Released && holder.ExpiresIn > 0 {
			return holder.ExpiresIn, nil
		}
	}
	return 0, &StaleError{resource, fence, e.Fence}
}

// Guard runs write if the lease holds the name. The ctx of write ends when the lease
// would if it was not renewed any more. If write is over only after that, the lease is
// looked at again: a [*StaleError] then means that others may have held the name while it
// wrote.
func (h Holders) Guard(ctx context.Context, resource string, fence uint64, write func(ctx context.Context) error) error {
	began := time.Now()
	left, err := h.Check(ctx, resource, fence)
	if err != nil {
		return err
	}
	end := began.Add(left)
	bounded, cancel := context.WithDeadlineCause(ctx, end, &StaleError{Resource: resource, Fence: fence})
	defer cancel()
	if err := write(bounded); err != nil || time.Now().Before(end) {
		return err
	}
	_, err = h.Check(ctx, resource, fence)
	return err
}

// GuardReader is Guard: both ask for the same.
func (h Holders) GuardReader(ctx context.Context, resource string, fence uint64, read func(ctx context.Context) error) error {
	return h.Guard(ctx, resource, fence, read)
}
