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

// A GroupLease is the leases of several locks that were acquired together. The client
// renews them until they are released or one of them is lost.
type GroupLease struct {
	leases []*Lease
	ctx    context.Context
	cancel context.CancelCauseFunc
	stops  []func() bool

	turn   chan struct{} // has room for the first caller of Release
	ended  chan struct{} // closed when Release has answered; not a sync.Once, in which virtual time stands still
	answer error         // written before ended is closed
}

// watch ends the context with the first lease that ends.
func (l *GroupLease) watch(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for _, x := range l.leases {
		ctx = withFence(ctx, x) //nolint:fatcontext // as deep as there are locks
	}
	l.turn, l.ended = make(chan struct{}, 1), make(chan struct{})
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	for _, x := range l.leases {
		held := x.Context()
		l.stops = append(l.stops, context.AfterFunc(held, func() { l.cancel(context.Cause(held)) }))
	}
}

// Context returns a context that is cancelled when the first of the leases is over, with
// a *LostError or ErrReleased as its cause. See [Lease.Context].
func (l *GroupLease) Context() context.Context {
	if l.none() {
		return overBefore()
	}
	return l.ctx
}

// Format implements fmt.Formatter: no verb shows a token.
func (l GroupLease) Format(f fmt.State, verb rune) {
	for i, x := range l.leases {
		if i > 0 {
			_, _ = io.WriteString(f, ", ")
		}
		x.Format(f, verb)
	}
}

// none reports whether these leases were never granted.
func (l *GroupLease) none() bool { return l == nil || l.ctx == nil }

// Done returns a channel that is closed when the first of the leases is over.
func (l *GroupLease) Done() <-chan struct{} { return l.Context().Done() }

// Err returns nil while all of the leases can be trusted, then why the first is over. See
// [Lease.Err].
func (l *GroupLease) Err() error {
	if l == nil || len(l.leases) == 0 {
		return errNoLease
	}
	for _, x := range l.leases {
		if err := x.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Fence returns the fencing token of one of the names, or 0 for another name. See
// [Lease.Fence].
func (l *GroupLease) Fence(name string) uint64 {
	if l == nil {
		return 0
	}
	if x := leaseNamed(name, slices.Values(l.leases)); x != nil {
		return x.Fence()
	}
	return 0
}

// Release releases all leases, the last one first. It may be called more than once: every
// call returns the same. It joins the errors of [Lease.Release].
func (l *GroupLease) Release(ctx context.Context) error {
	if l.none() {
		return errNoLease
	}
	select {
	case l.turn <- struct{}{}:
	default:
		<-l.ended
		return l.answer
	}
	defer func() { // even if the Observer panics
		for _, stop := range l.stops {
			stop()
		}
		l.cancel(ErrReleased)
		close(l.ended)
	}()
	l.answer = each(l.leases, func(x *Lease) error { return x.Release(ctx) })
	return l.answer
}

// giveUp releases the acquired leases when not all could be acquired: no work was done
// under them. If the caller's time is up, it does not wait for the releases.
func (l *GroupLease) giveUp(ctx context.Context) {
	if l.cancel != nil {
		defer l.cancel(ErrReleased)
	}
	release := func() { // the Observer gets the error of a failing backend
		_ = each(l.leases, func(x *Lease) error { return x.ReleaseNow(ctx) })
	}
	if len(l.leases) > 0 && ended(ctx) != nil {
		l.leases[0].h.c.aside(release)
	} else {
		release()
	}
}

// each ends leases, the last first, and continues even if the Observer panics at one.
func each(leases []*Lease, end func(*Lease) error) (err error) {
	if len(leases) == 0 {
		return nil
	}
	last := len(leases) - 1
	defer func() { err = errors.Join(err, each(leases[:last], end)) }()
	return end(leases[last])
}

// do nests f in the Do of each lease.
func (l *GroupLease) do(ctx context.Context, err error, f func(ctx context.Context) error) (ran bool, _ error) {
	if err != nil {
		return false, err
	}
	defer l.Release(ctx) //nolint:errcheck // usually it is the second, and returns the same
	for _, lease := range slices.Backward(l.leases) {
		inner := f
		f = func(ctx context.Context) error {
			did, err := do(ctx, lease, nil, inner)
			ran = ran || did && lease == l.leases[len(l.leases)-1]
			return err
		}
	}
	err = f(ctx)
	return ran, err
}
