package pawl

import (
	"context"
	"time"
)

// Observer has functions that the client calls when something happens to its locks, for
// logs, metrics and traces. Every field may be nil. New copies the fields.
// [JoinObservers] joins several Observers.
//
// Every lease that was reported to Acquired ends in exactly one call of Released or Lost,
// after Acquired has returned. So a gauge that goes up in Acquired and down in Released
// and Lost counts the held leases; it is 0 when Close has returned nil. The client does
// not report a lease that its caller never got because ctx ended in the same instant. It
// does report a lease that [All] got and gave back because another lock was taken.
//
// Several goroutines may call the functions at once. Queued, NotAcquired, Acquired,
// Released, the Failed of a call, and a Lost that Release detected run on the goroutine
// that called Lock or Release. That goroutine goes on when the function returns, so the
// functions should be quick. The other functions run on goroutines of the client.
//
// The functions may use the client and its leases, with two exceptions. They must not
// wait for Close and Shutdown, which wait for them. And a function that waits for the
// name of its event deadlocks, because no lock is reentrant.
//
// If a function panics, or ends its goroutine, the call that ran it releases a lease that
// it has just acquired, and the panic goes on to the caller. On a goroutine of the client
// a panic ends the program.
type Observer struct {
	// Queued: a claim waits, or its place in the queue has changed. The client also
	// reports a claim that waits behind other claims of the same client: when it begins
	// to wait. When its turn within the client comes, and other clients are still ahead,
	// the client reports it again.
	Queued func(QueuedEvent)
	// NotAcquired: a claim ended without a lease. If Try is true and Err matches ErrHeld,
	// a run was skipped.
	NotAcquired func(NotAcquiredEvent)
	// Acquired: a lease was granted.
	Acquired func(AcquiredEvent)
	// Released: a lease was released, or its release failed: see ReleasedEvent.Err.
	Released func(ReleasedEvent)
	// Lost: a lease ended without a release. The client detected it, or its Release did.
	Lost func(LostEvent)
	// Failed: a request to the backend failed. The client repeats it if there is still
	// time.
	Failed func(FailedEvent)
}

// Event has the fields that all events share.
type Event struct {
	// Ctx carries the values of a ctx, for traces: the ctx of Lock, TryLock or ForceLock,
	// or of the Release that reports the event. During Lock, TryLock and ForceLock, Ctx
	// is the ctx of that call. In other events it has only the values, and never ends.
	Ctx context.Context
	// Claim is a number for one call of Lock, TryLock or ForceLock and the lease that it
	// got. It is the same in all their events, and different for any other claim of any
	// client or process. It is no secret. Claim is 0 if the event is about several
	// claims.
	Claim uint64
	Name  string // as it is stored; one of the names if the event is about several claims
}

// QueuedEvent says that a claim waits.
type QueuedEvent struct {
	Event
	// Held has the holders, by the backend's last answer, and the claim's position, which
	// counts the claims ahead of it in the backend and in this client.
	Held *HeldError
}

// NotAcquiredEvent says that a claim ended without a lease.
type NotAcquiredEvent struct {
	Event
	Try    bool          // a call that does not wait: TryLock, TryDo, ...
	Waited time.Duration // how long the call took
	Err    error         // the error that the call returns
}

// AcquiredEvent says that a lease was granted.
type AcquiredEvent struct {
	Event
	Lease  *Lease
	Waited time.Duration // how long the call took
}

// ReleasedEvent says that a lease was released or detached.
type ReleasedEvent struct {
	Event
	Lease *Lease
	Held  time.Duration // since it was granted
	// Err is the error that Release returns: nil, or an error that matches ErrUnavailable
	// if the backend did not confirm the release. The client then retries until the lease
	// would have expired. After Detach it is ErrDetached.
	Err error
}

// LostEvent says that a lease ended without a release.
type LostEvent struct {
	Event
	Lease *Lease
	Held  time.Duration // since it was granted
	Err   *LostError
}

// FailedEvent says that a request to the backend failed.
type FailedEvent struct {
	Event
	Op    Op  // OpAcquire, OpRenew or OpRelease
	Count int // how many claims the request was about
	Err   error
}

// reportFailed reports a request that failed. e is the event of its claim, or has only
// the Ctx and one Name if the request was about several claims.
func (o *Observer) reportFailed(e Event, op Op, count int, err error) {
	if o != nil && o.Failed != nil {
		o.Failed(FailedEvent{e, op, count, err})
	}
}

// JoinObservers returns an Observer that calls all given ones for each event, in their
// order. It leaves out nil. If one panics, the observers behind it do not get the event.
func JoinObservers(all ...*Observer) *Observer {
	joined := &Observer{}
	for _, o := range all {
		if o == nil {
			continue
		}
		joined.Queued = join(joined.Queued, o.Queued)
		joined.NotAcquired = join(joined.NotAcquired, o.NotAcquired)
		joined.Acquired = join(joined.Acquired, o.Acquired)
		joined.Released = join(joined.Released, o.Released)
		joined.Lost = join(joined.Lost, o.Lost)
		joined.Failed = join(joined.Failed, o.Failed)
	}
	return joined
}

// join returns nil for two nil functions, because the client does less work without a
// function to call.
func join[E any](a, b func(E)) func(E) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(e E) {
		a(e)
		b(e)
	}
}
