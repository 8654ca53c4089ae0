package pawl

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// A Group is several locks that are acquired together: all of them or none. [All] makes
// one.
type Group struct {
	parts      []*locker
	invalidErr error
}

// All makes one lock of several locks, of any kind and any client. Its holder holds all
// of them.
//
// A caller that waits holds nothing. It waits in the queue of a lock that is taken. When
// it is granted that lock, it takes the others if they are free; otherwise it gives that
// lock back, and waits for the lock that is taken now. So it blocks no other caller, and
// two callers never wait for each other. If all locks are of one client, memory, SQLite,
// PostgreSQL and etcd grant them in one step. So does Redis, except with wait_replicas
// and across the slots of a cluster.
//
// After a caller has given a lock back eight times, it holds each lock that it is
// granted, so that it does not starve while all locks are busy. It takes mutexes and
// read/write locks first, and permits of semaphores last, each in the order of names, so
// that it holds no permit while it waits for a mutex.
//
// A Group with [WithValue] gives no granted lock back while it waits, because each grant
// writes the value. With [WithValueBelow] it also takes the locks in the order of names.
//
// Callers do not deadlock, even if a name is a semaphore to one of them and a mutex to
// another. But a caller without WithValueBelow takes permits last, so it may hold "b"
// while it waits for a permit of "a". That may block a caller that takes "a" first. So a
// caller without WithValueBelow gives all locks back after 1 to 2 s, then after twice as
// long, and so on.
//
// A lock that is passed twice counts once. Locking the Group returns ErrInvalid if one
// name is two kinds of lock, or has different options. Do not pass a name twice with
// [WithHealth], because Pawl cannot compare two functions.
func All(locks ...Lockable) *Group {
	l := &Group{}
	if len(locks) == 0 {
		l.invalidErr = invalid("All", "has no locks", "one or more")
	}
	for _, x := range locks {
		if x == nil {
			l.invalidErr = invalid("All", "has a lock that is nil", "locks")
			continue
		}
		p := x.locker()
		if p.c == nil {
			l.invalidErr = errNotMade
			continue
		}
		l.invalidErr = cmp.Or(l.invalidErr, p.invalidErr)
		i, found := slices.BinarySearchFunc(l.parts, p, compareLocks)
		if !found {
			l.parts = slices.Insert(l.parts, i, p)
			continue
		}
		what := fmt.Sprintf("All with %q", p.name)
		if q := l.parts[i]; q.c != p.c {
			l.invalidErr = cmp.Or(l.invalidErr, invalid(what, "has it from two clients of "+p.c.backend, "each name once"))
		} else if q.weight != p.weight || q.limit != p.limit || !reflect.DeepEqual(q.o, p.o) {
			l.invalidErr = cmp.Or(l.invalidErr, invalid(what, "has it twice, with different kinds or options", "each name once"))
		}
	}
	return l
}

// Format implements fmt.Formatter: no verb prints the tokens of the locks' clients.
func (l Group) Format(f fmt.State, verb rune) { formatAll(f, verb, l.parts) }

// Lock waits until all locks are granted. Lock holds none of them while it waits, with
// the exceptions that [All] names. See [Mutex.Lock] for ctx and errors. The error names
// the lock that was not granted. If Lock loses a lock that it does hold, it ends at once
// with a *LostError.
func (l *Group) Lock(ctx context.Context) (*GroupLease, error) { return l.acquire(ctx, waiting) }

// TryLock makes one attempt and does not wait. Its error matches ErrHeld if others hold
// or wait for one of the locks; the error names that lock.
func (l *Group) TryLock(ctx context.Context) (*GroupLease, error) { return l.acquire(ctx, trying) }

// Do runs f under all locks. See [Mutex.Do]; [FenceOf] finds the fence of each name.
func (l *Group) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return lockAndDo(ctx, l.Lock, f)
}

// TryDo is Do without waiting, and reports whether f ran. See [Mutex.TryDo].
func (l *Group) TryDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	return tryLockAndDo(ctx, l.TryLock, f)
}

func (l *Group) acquire(ctx context.Context, m mode) (*GroupLease, error) {
	if l == nil || l.invalidErr == nil && len(l.parts) == 0 {
		return nil, errNotMade
	}
	if l.invalidErr != nil {
		return nil, l.invalidErr
	}
	if ctx == nil {
		return nil, errNoContext
	}
	wait := time.Duration(0)
	for _, p := range l.parts { // refuse a bad lock before anything is sent
		if _, err := p.claim(ctx, p.weight, p.limit); err != nil {
			return nil, err
		}
		if p.o.wait > 0 && (wait == 0 || p.o.wait < wait) {
			wait = p.o.wait
		}
	}
	waitCtx := ctx
	if wait > 0 && m == waiting {
		var cancel context.CancelFunc
		waitCtx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	all := &GroupLease{}
	var err error
	allHeld := false
	defer func() {
		if !allHeld { // even if an Observer panics
			all.giveUp(waitCtx, err)
		}
	}()
	if m == trying {
		_, err = tryAll(waitCtx, l.parts, all, trying)
	} else {
		err = waitForAll(waitCtx, l.parts, all)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all.leases, func(a, b *Lease) int {
		return cmp.Or(cmp.Compare(a.StoredName(), b.StoredName()), cmp.Compare(a.Backend(), b.Backend()))
	})
	all.watch(ctx)
	if err = all.Err(); err != nil { // a lease was lost before the last lock was granted
		return nil, err
	}
	allHeld = true
	return all, nil
}
