package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"
)

// A Group is several locks that are acquired together: all of them or none. [All] makes
// one.
type Group struct {
	parts []*Locker
	bad   error
}

// All makes one lock of several locks, of any kind and any client. Its holder holds all
// of them.
//
// If the locks are free and of one client, one step of the backend grants them all, where
// the backend has such steps: memory, SQLite, PostgreSQL, and Redis except across the
// slots of a cluster. Otherwise the client acquires them in the order of their names,
// whatever the order of parts. So two callers that need the same locks cannot deadlock.
//
// A lock that is given twice counts once. Locking the Group returns ErrInvalid if a name
// is given in two ways, with different options, or twice with [WithHealth], because Pawl
// cannot compare two functions.
func All(parts ...Part) *Group {
	l := &Group{}
	if len(parts) == 0 {
		l.bad = &InvalidError{What: "All", Problem: "has no locks", Allowed: "one or more"}
	}
	for _, x := range parts {
		if x == nil {
			l.bad = &InvalidError{What: "All", Problem: "has a lock that is nil", Allowed: "locks"}
			continue
		}
		p := x.part()
		if p == nil || p.c == nil {
			l.bad = errNotMade
			continue
		}
		l.bad = cmp.Or(l.bad, p.bad)
		i, found := slices.BinarySearchFunc(l.parts, p, before)
		if !found {
			l.parts = slices.Insert(l.parts, i, p)
			continue
		}
		if q := l.parts[i]; q.c != p.c {
			l.bad = cmp.Or[error](l.bad, &InvalidError{
				What: fmt.Sprintf("All of %q", p.name), Problem: "wants it from two clients of " + p.c.backend, Allowed: "each name once",
			})
		} else if q.weight != p.weight || q.limit != p.limit || !reflect.DeepEqual(q.o, p.o) {
			l.bad = cmp.Or[error](l.bad, &InvalidError{
				What: fmt.Sprintf("All of %q", p.name), Problem: "wants it in two ways", Allowed: "each name once",
			})
		}
	}
	return l
}

// Format implements fmt.Formatter: no verb prints the tokens of the locks' clients.
func (l Group) Format(f fmt.State, verb rune) {
	for i, p := range l.parts {
		if i > 0 {
			_, _ = io.WriteString(f, ", ")
		}
		p.Format(f, verb)
	}
}

// before is the order in which all clients acquire: by name, and for the same name by
// backend.
func before(a, b *Locker) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.c.backend, b.c.backend))
}

// Lock waits until all locks are granted. It holds the first ones while it waits for the
// next. If it fails, it releases what it holds. See [Mutex.Lock] for ctx and errors: the
// error names the lock that was not granted.
func (l *Group) Lock(ctx context.Context) (*GroupLease, error) { return l.acquire(ctx, waiting) }

// TryLock makes one attempt and does not wait. Its error matches ErrHeld if others hold
// or wait for one of the locks; the error names that lock.
func (l *Group) TryLock(ctx context.Context) (*GroupLease, error) { return l.acquire(ctx, trying) }

// Do runs f under all locks. See [Mutex.Do]; [FenceOf] finds the fence of each name.
func (l *Group) Do(ctx context.Context, f func(ctx context.Context) error) error {
	if f == nil {
		return errNoFunction
	}
	leases, err := l.Lock(ctx)
	_, err = leases.do(ctx, err, f)
	return err
}

// TryDo is Do without waiting, and reports whether f ran. See [Mutex.TryDo].
func (l *Group) TryDo(ctx context.Context, f func(ctx context.Context) error) (ran bool, err error) {
	if f == nil {
		return false, errNoFunction
	}
	leases, err := l.TryLock(ctx)
	if errors.Is(err, ErrHeld) {
		return false, nil
	}
	return leases.do(ctx, err, f)
}

func (l *Group) acquire(ctx context.Context, m mode) (*GroupLease, error) {
	if l == nil || l.bad == nil && len(l.parts) == 0 {
		return nil, errNotMade
	}
	if l.bad != nil {
		return nil, l.bad
	}
	if ctx == nil {
		return nil, errNoContext
	}
	claims := make([]*claim, len(l.parts))
	wait := time.Duration(0)
	for i, p := range l.parts { // before anything is sent
		cl, err := p.claim(ctx, p.weight, p.limit)
		if err != nil {
			return nil, err
		}
		claims[i] = cl
		if p.o.wait > 0 && (wait == 0 || p.o.wait < wait) {
			wait = p.o.wait
		}
	}
	waits, end := ctx, time.Time{}
	if wait > 0 && m == waiting {
		end = time.Now().Add(wait)
		var cancel context.CancelFunc
		waits, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	all := &GroupLease{}
	held := false
	defer func() {
		if !held { // even if an Observer panics
			all.giveUp(ctx)
		}
	}()
	done, c := false, l.parts[0].c
	if !slices.ContainsFunc(l.parts, func(p *Locker) bool { return p.c != c }) {
		var err error
		if done, err = c.atOnce(waits, claims, &all.leases, m); err != nil {
			return nil, err
		}
	}
	if !done {
		if err := l.oneByOne(ctx, all, m, end); err != nil {
			return nil, err
		}
	}
	all.watch(ctx)
	if err := all.Err(); err != nil { // the first was lost during the wait for the last
		return nil, err
	}
	held = true
	return all, nil
}

// oneByOne acquires in order. The locks wait until end, all together.
func (l *Group) oneByOne(ctx context.Context, all *GroupLease, m mode, end time.Time) error {
	for _, p := range l.parts {
		one := *p
		if !end.IsZero() {
			one.o.wait = max(time.Until(end), 1)
		}
		lease, err := one.as(ctx, m)
		if err != nil {
			return err
		}
		all.leases = append(all.leases, lease)
	}
	return nil
}
