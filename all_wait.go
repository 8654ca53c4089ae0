package pawl

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// maxGiveBackRounds is the number of times that a caller gives back a granted lock
// because another is taken. After that, the caller keeps its locks while it waits.
//
// A caller that holds nothing while it waits may starve: if two locks are so busy that
// one of them is always held, the caller never finds both free. To get both, it has to
// hold one of them unused until the other is free.
const maxGiveBackRounds = 8

// A caller that may block another one gives way after minGiveWayTimeout, and each later
// time after twice as long, up to maxGiveWayTimeout. Jitter may double each timeout.
const (
	minGiveWayTimeout = time.Second
	maxGiveWayTimeout = 24 * time.Hour
)

// errGaveWay ends a wait that might block another caller.
var errGaveWay = errors.New("gave way")

// waitForAll waits until all locks are granted. It appends the leases to all, even if a
// later lock fails.
//
// For maxGiveBackRounds rounds it waits in the queue of a lock that is taken, and holds
// nothing meanwhile. When it is granted that lock, it takes the others if they are free.
// Otherwise it gives that lock back, and waits for the lock that is taken now. After
// these rounds, or if a lock has a value, it keeps each granted lock while it waits.
func waitForAll(ctx context.Context, parts []*locker, all *GroupLease) error {
	next, lastErr := parts[0], error(nil)
	if _, can := driver.As[driver.AllAcquirer](next.c.driver); can && len(parts) > 1 && oneClient(parts) {
		if next, lastErr = tryAll(ctx, parts, all, waiting); next == nil {
			return lastErr
		}
		all.giveUp(ctx, lastErr)
	}
	if anyComparesValue(parts) {
		_, err := takeInOrder(ctx, parts, all, 0) // parts are in the order of names
		return err
	}
	rounds, order := maxGiveBackRounds, permitsLast(parts)
	if anyWritesValue(parts) {
		rounds = 0
	}
	for timesGivenWay := 0; ; timesGivenWay++ {
		for range rounds {
			lease, err := next.await(ctx, lastErr)
			if err != nil {
				return err
			}
			all.leases = append(all.leases, lease)
			if next, lastErr = tryAll(ctx, parts, all, waiting); next == nil {
				return lastErr
			}
			all.giveUp(ctx, lastErr)
		}
		// The pause is random, so that two callers do not give way to each other for
		// ever.
		timeout := backoff.JitterUp(backoff.Doubled(minGiveWayTimeout, timesGivenWay, maxGiveWayTimeout))
		at, err := takeInOrder(ctx, order, all, timeout)
		if !errors.Is(err, errGaveWay) {
			return err
		}
		all.giveUp(ctx, nil)
		if at.isMutexToOthers(ctx) {
			order = parts
		}
		next, lastErr = at, nil
		rounds = min(rounds, 1)
	}
}

// anyWritesValue reports whether a grant of one of the locks changes the value of its
// name, or depends on it. If so, the caller gives no lock back. Otherwise the name would
// keep the value that the grant wrote, although the caller never had all locks.
func anyWritesValue(parts []*locker) bool {
	return slices.ContainsFunc(parts, func(p *locker) bool { return p.o.value != nil || p.o.valueBelow != nil })
}

// anyComparesValue reports whether a lock compares the value of its name. If the caller
// gave such a lock back, the value that the grant wrote would refuse its next claim.
func anyComparesValue(parts []*locker) bool {
	return slices.ContainsFunc(parts, func(p *locker) bool { return p.o.valueBelow != nil })
}

// isMutexToOthers reports whether another client uses the name as a mutex or a read/write
// lock, although it is a semaphore to this caller. Such a client locks the name before it
// takes any permit.
func (l *locker) isMutexToOthers(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, l.c.settings.requestTimeout(l.c.settings.TTL))
	defer cancel()
	e, err := l.c.driver.Inspect(bounded, l.name)
	return err == nil &&
		(slices.ContainsFunc(e.Holders, func(h driver.Holder) bool { return h.Limit == driver.Unlimited }) ||
			slices.ContainsFunc(e.Waiters, func(w driver.Waiter) bool { return w.Limit == driver.Unlimited }))
}

// await waits for one lock of a group. lastErr is the error that refused the lock before.
func (l *locker) await(ctx context.Context, lastErr error) (*Lease, error) {
	if ctxErr(ctx) != nil {
		return nil, gaveUp(ctx, l.name, lastErr)
	}
	one := *l
	one.o.wait = 0 // ctx already has the time limit of the whole group
	return one.lockAs(ctx, waiting)
}

// tryAll makes one attempt at each lock that has no lease in all, in one step of the
// backend if possible. If the caller has to wait, next is the lock to wait for, and err
// is the reason. Otherwise next is nil, and the caller of tryAll returns err.
func tryAll(ctx context.Context, parts []*locker, all *GroupLease, m mode) (next *locker, err error) {
	began, n := time.Now(), len(all.leases)
	var rest []*locker
	var claims []*claim
	for _, p := range parts {
		if slices.ContainsFunc(all.leases, func(x *Lease) bool { return x.h.c == p.c && x.h.claim.Name == p.name }) {
			continue
		}
		cl, err := p.claim(ctx, p.weight, p.limit)
		if err != nil {
			return nil, err
		}
		rest, claims = append(rest, p), append(claims, cl)
	}
	// A caller that waits does not try locks with values one by one, because giving one
	// back would leave its value: see anyWritesValue.
	at, err := attemptAll(ctx, rest, claims, &all.leases, m == trying || !anyWritesValue(parts))
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return rest[0], err
	case err == nil:
		for _, lease := range all.leases[n:] {
			if c := lease.h.c; c.observer != nil {
				lease.announce(c.epoch.Add(lease.beginOffset).Sub(began))
			}
		}
		return nil, nil
	}
	retriedTooLong := errors.Is(err, ErrUnavailable) && time.Since(began) >= rest[at].c.settings.RetryFor
	if m == waiting && ctxErr(ctx) == nil && !retriedTooLong && !endsCall(claims, err) {
		return rest[at], err
	}
	if m == waiting && errors.Is(err, ErrHeld) && ctxErr(ctx) != nil {
		err = gaveUp(ctx, rest[at].name, err)
	}
	rest[at].c.observer.reportNotAcquired(claims[at], m, time.Since(began), err)
	return nil, err
}

// attemptAll makes one attempt at each of the claims, and stops at the first that fails.
// Without oneByOne it grants nothing if the claims need more than one step.
func attemptAll(ctx context.Context, parts []*locker, claims []*claim, all *[]*Lease, oneByOne bool) (at int, err error) {
	stepMax := driver.MaxAll
	if !oneClient(parts) {
		stepMax = 1
	}
	if !oneByOne && len(claims) > stepMax {
		return 0, errors.ErrUnsupported
	}
	for from := 0; from < len(claims); {
		to := min(from+stepMax, len(claims))
		at, err := parts[from].c.acquireTogether(ctx, claims[from:to], all)
		switch {
		case err == nil:
			from = to
		case oneByOne && stepMax > 1 && errors.Is(err, errors.ErrUnsupported):
			stepMax = 1
		default:
			return from + at, err
		}
	}
	return 0, nil
}

func oneClient(parts []*locker) bool {
	return !slices.ContainsFunc(parts, func(p *locker) bool { return p.c != parts[0].c })
}

// endsCall reports whether this error ends the whole call. If a claim compares the value,
// each error except ErrHeld does. An attempt without an answer may have written a value
// that would refuse the next attempt, as if another client had written it.
func endsCall(claims []*claim, err error) bool {
	compares := func(cl *claim) bool { return cl.ValueBelow != nil }
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrClosed) || isPermanent(err) ||
		!errors.Is(err, ErrHeld) && slices.ContainsFunc(claims, compares)
}

// compareLocks compares two locks by name, and then by backend.
func compareLocks(a, b *locker) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.c.backend, b.c.backend))
}

// permitsLast returns the order in which a caller takes locks that it keeps while it
// waits: mutexes and read/write locks first, and then permits, each in the order of
// names. So a caller holds a permit only while it waits for other permits.
func permitsLast(parts []*locker) []*locker {
	isSemaphore := func(p *locker) bool { return p.limit < driver.Unlimited }
	mutexes := slices.DeleteFunc(slices.Clone(parts), isSemaphore)
	return append(mutexes, slices.DeleteFunc(slices.Clone(parts), func(p *locker) bool { return !isSemaphore(p) })...)
}

// takeInOrder waits for one lock after the other, and keeps each. It ends as soon as one
// of them is lost. After an error, at is the lock that it waited for. See awaitOrGiveWay
// for timeout.
func takeInOrder(ctx context.Context, parts []*locker, all *GroupLease, timeout time.Duration) (at *locker, err error) {
	waitCtx, end := context.WithCancelCause(ctx)
	defer end(nil)
	for i, p := range parts {
		await := func() (*Lease, error) { return p.await(waitCtx, nil) }
		if slices.ContainsFunc(parts[:i], func(q *locker) bool { return compareLocks(p, q) < 0 }) {
			await = func() (*Lease, error) { return p.awaitOrGiveWay(waitCtx, timeout) }
		}
		lease, err := await()
		if err != nil {
			if lost := context.Cause(waitCtx); ctx.Err() == nil && errors.Is(lost, ErrLost) {
				err = lost
			}
			return p, err
		}
		all.leases = append(all.leases, lease)
		held := lease.Context()
		defer context.AfterFunc(held, func() { end(context.Cause(held)) })()
	}
	return nil, nil
}

// awaitOrGiveWay is await for a caller that already holds a lock of a later name than l.
// Another caller may hold l and wait for that later lock, in two cases: it uses
// WithValueBelow, and so takes locks in the order of names; or l is a semaphore to only
// one of the two callers. Then both would wait for ever. So this caller gives way after
// timeout.
//
// In each cycle of callers that wait for each other, at least one waits for an earlier
// name than one that it holds, and so gives way. Its timeout grows each time, so that it
// does not starve if each holder takes longer than the first timeout.
func (l *locker) awaitOrGiveWay(ctx context.Context, timeout time.Duration) (*Lease, error) {
	waitCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(timeout, func() { cancel(errGaveWay) }).Stop()
	lease, err := l.await(waitCtx, nil)
	if err != nil && ctx.Err() == nil && context.Cause(waitCtx) == errGaveWay { //nolint:errorlint // the cause itself
		err = errGaveWay
	}
	return lease, err
}
