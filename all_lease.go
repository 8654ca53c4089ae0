package pawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/pawl-go/pawl/internal/lazyctx"
)

// A GroupLease is the leases of several locks that were acquired together. The client
// renews them until they are released or one of them is lost.
type GroupLease struct {
	leases []*Lease
	ctx    context.Context
	cancel context.CancelCauseFunc
	stops  []func() bool // end the watches of the leases' contexts

	turn   chan struct{} // capacity 1: the first caller of Release sends a value
	ended  chan struct{} // closed when Release has answered; virtual time would stand still in a sync.Once
	answer error         // written before ended is closed
}

// watch makes the context, which ends with the first lease that ends.
func (l *GroupLease) watch(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for _, x := range l.leases {
		ctx = withLease(ctx, x) //nolint:fatcontext // as deep as there are locks
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
	if l.neverGranted() {
		return endedContext()
	}
	return l.ctx
}

// Format implements fmt.Formatter: no verb shows a token.
func (l GroupLease) Format(f fmt.State, verb rune) { formatAll(f, verb, l.leases) }

func formatAll[F fmt.Formatter](f fmt.State, verb rune, all []F) {
	for i, x := range all {
		if i > 0 {
			_, _ = io.WriteString(f, ", ")
		}
		x.Format(f, verb)
	}
}

func (l *GroupLease) neverGranted() bool { return l == nil || l.ctx == nil }

// Done returns a channel that is closed when the first of the leases is over.
func (l *GroupLease) Done() <-chan struct{} { return l.Context().Done() }

// Err returns nil while all of the leases hold, then the error of a lease that is over.
// See [Lease.Err].
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

// Lease returns the lease of one of the names, or nil for another name. See
// [Lease.StoredName].
func (l *GroupLease) Lease(name string) *Lease {
	if l == nil {
		return nil
	}
	return leaseNamed(name, slices.Values(l.leases))
}

// Fence returns the fencing token of one of the names, or 0 for another name. See
// [Lease.Fence].
func (l *GroupLease) Fence(name string) uint64 { return l.Lease(name).Fence() }

func (l *GroupLease) all() []*Lease { return l.leases }

// Release releases all leases, side by side, and takes no longer than one request may
// take. It may be called more than once: every call returns the same. The error joins the
// errors of [Lease.Release].
//
// The first name in byte order becomes free last, unless the others take longer than a
// tenth of a second. Callers that want the same names wait for the first one, and then
// find the others free.
func (l *GroupLease) Release(ctx context.Context) error { return l.end(ctx, false) }

// ReleaseUnused is Release without the minimum holds, for a holder that has not begun its
// work. See [Lease.ReleaseUnused].
func (l *GroupLease) ReleaseUnused(ctx context.Context) error { return l.end(ctx, true) }

func (l *GroupLease) end(ctx context.Context, unused bool) error {
	if l.neverGranted() {
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
	if ctx == nil {
		ctx = context.Background()
	}
	l.answer = releaseAll(ctx, lazyctx.WithoutCancel(ctx), l.leases, unused)
	return l.answer
}

// giveUp releases the acquired leases when not all could be acquired. They are unused,
// because no work was done under them. giveUp does not wait for the releases if ctx has
// ended or the backend fails.
func (l *GroupLease) giveUp(ctx context.Context, cause error) {
	if l.cancel != nil {
		defer l.cancel(ErrReleased)
	}
	leases := l.leases
	l.leases = nil
	switch { // giveUp drops the errors, because the Observer gets them
	case len(leases) == 0:
	case ctxErr(ctx) != nil, errors.Is(cause, ErrUnavailable):
		leases[0].h.c.runInBackground(func() { _ = releaseAll(ctx, lazyctx.WithoutCancel(ctx), leases, true) })
	default:
		_ = releaseAll(ctx, ctx, leases, true)
	}
}
