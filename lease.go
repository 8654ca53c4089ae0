package pawl

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"
)

// Lease is a granted lock. The client renews it until it is released or lost.
//
// When a lease is lost, its client notifies the holder before the backend can grant the
// name to another client: Done is closed, and Context is cancelled with a *LostError as
// its cause. Err reads the clock itself, so it is right even if Done is not closed yet.
// There are two exceptions: after ForceLock, and after Break with a Delay that is too
// short for the holder, the backend may grant the name first. Then only the fence
// protects what the holder writes. And no lock can stop a write that is already on its
// way, or a process that is paused between Err and the write: see [Lease.Fence].
//
// A nil *Lease, which comes with every error, is over: its Err and Release return an
// error that matches ErrInvalid.
type Lease struct{ leaseState }

// Name returns the locked name, without its namespace: see [Client.Namespace].
func (l *Lease) Name() string {
	if l.neverGranted() {
		return ""
	}
	return strings.TrimPrefix(l.h.claim.Name, l.claim.space)
}

// StoredName returns the locked name with its namespace, as the backend, errors, events
// and logs have it. See [Client.StoredName].
func (l *Lease) StoredName() string {
	if l.neverGranted() {
		return ""
	}
	return l.h.claim.Name
}

// Backend returns the name and the location of the backend that granted the lease, as in
// [BackendError].Backend. CheckLease of a backend refuses a lease of another one.
func (l *Lease) Backend() string {
	if l.neverGranted() {
		return ""
	}
	return l.h.c.backend
}

// leaseNamed returns the first lease whose Name or StoredName is name. A name in the form
// of a stored name matches only a StoredName, because a tenant may have chosen such a
// name for a lock in its own namespace. leaseNamed returns nil if no lease matches. It
// also returns nil if the first match is in a namespace and a later match is in none,
// because the caller may mean either.
func leaseNamed(name string, leases iter.Seq[*Lease]) *Lease {
	inStoredForm := strings.HasPrefix(name, "@") && strings.Contains(name, ":")
	var inside, stored *Lease
	for l := range leases {
		if inside == nil && !inStoredForm && l.Name() == name {
			inside = l
		}
		if stored == nil && l.StoredName() == name {
			stored = l
		}
	}
	if inside != nil && stored != nil && inside != stored {
		return nil
	}
	return cmp.Or(inside, stored)
}

// Fence returns the fencing token: it is greater than the fence of every earlier lease on
// this name, of any process, even after a crash of the backend. Send it along with each
// write, and let the resource compare:
//
//   - A Mutex, or a writer of an RWMutex: refuse the write if any greater fence was
//     seen on this name. The write belongs to an older lease, which is over.
//   - A reader of an RWMutex: readers hold side by side, so a smaller fence may be as
//     good as a greater one. Refuse the write only if a greater fence of a writer was
//     seen.
//   - Permits of a Semaphore: refuse nothing, because a lease with a much smaller
//     fence may still be held. To guard such work, give each permit a Mutex on a
//     name of its own.
func (l *Lease) Fence() uint64 {
	if l.neverGranted() {
		return 0
	}
	return l.fence
}

// Err returns nil while the lease holds, then a *LostError, ErrReleased or ErrDetached.
// It reads the clock, so it is right at every instant, even right after a pause of the
// process. It detects a ForceLock, or a Break with a negative Delay, only when the
// backend has reported it, a moment later. [Lease.Confirm] asks the backend.
func (l *Lease) Err() error {
	if l.neverGranted() {
		return errNoLease
	}
	return l.checkTerm(l.h.c.now())
}

// Context returns a context that is cancelled when the lease is over, with a *LostError,
// ErrReleased or ErrDetached as its cause. It has the values of the ctx of Lock, but does
// not end with that ctx.
//
// After a pause that outlasts the lease (SIGSTOP, a suspended host), the process may run
// for a moment before the context's timer fires. Err reads the clock: call it before a
// write, or better, let the resource check the fence.
func (l *Lease) Context() context.Context {
	if l.neverGranted() {
		return endedContext()
	}
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithCancelCause(withLease(context.WithoutCancel(l.claim.ctx), l))
		if l.endReason != nil {
			l.cancel(l.endReason)
		}
	}
	return l.ctx
}

// Done returns a channel that is closed when the lease is over; then Err says why.
func (l *Lease) Done() <-chan struct{} { return l.Context().Done() }

// Deadline returns the time at which the lease will be lost unless the client renews it
// before, on this process's clock. Each renewal moves it.
func (l *Lease) Deadline() time.Time {
	if l.neverGranted() {
		return time.Time{}
	}
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	now := l.h.c.now()
	return now.Mono.Add(l.h.term.Left(now))
}

// Format implements fmt.Formatter: no verb prints the token, nor does a copy.
func (l Lease) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "lease of %q (fence %d)", l.StoredName(), l.fence)
}

// LogValue implements slog.LogValuer: the name, the fence, and how much longer the lease
// holds if it is not renewed; or why it is over.
func (l *Lease) LogValue() slog.Value {
	if l.neverGranted() {
		return slog.GroupValue(slog.String("over", errNoLease.Error()))
	}
	attrs := []slog.Attr{slog.String("name", l.StoredName()), slog.Uint64("fence", l.fence)}
	if err := l.Err(); err != nil {
		return slog.GroupValue(append(attrs, slog.String("over", err.Error()))...)
	}
	return slog.GroupValue(append(attrs, slog.Duration("left", time.Until(l.Deadline()).Round(time.Millisecond)))...)
}

func (l *Lease) all() []*Lease { return []*Lease{l} }

func (l *Lease) neverGranted() bool { return l == nil || l.h == nil }

func endedContext() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errNoLease)
	return ctx
}

// ctxLeaseKey is the key for the leases that a context carries, as a *ctxLease.
type ctxLeaseKey struct{}

// ctxLease is a lease that a ctx carries, and the leases of the contexts around that ctx.
type ctxLease struct {
	lease *Lease
	outer *ctxLease
}

func withLease(ctx context.Context, l *Lease) context.Context {
	outer, _ := ctx.Value(ctxLeaseKey{}).(*ctxLease)
	return context.WithValue(ctx, ctxLeaseKey{}, &ctxLease{l, outer})
}
