package pawl

import (
	"context"
	"time"
)

// Observer is told what happens to a client's locks, for logs, metrics and traces. Every
// field may be nil. New copies them. [Observers] joins several.
//
// Every lease that was reported to Acquired ends in exactly one of Released and Lost,
// which is called after Acquired has returned. So a gauge that goes up in the one and
// down in the others is right, at the latest when Close has returned nil. A lease that
// its caller never got, because ctx ended in the same instant, is not reported.
//
// Several goroutines may call the functions at once. The goroutine that made a call
// reports Queued, Refused, Acquired and Released, the Failed of that call, and a Lost
// that only Release found out. It goes on when they return, so they should be quick. What
// the client finds by itself is reported by goroutines of its own.
//
// The functions may use the client and its leases, with two exceptions. Close and
// Shutdown wait for them, so they must not wait for those. And waiting for the very name
// that they are told of deadlocks, as with any lock that is not reentrant.
//
// A function that panics, or ends its goroutine, leaves nothing behind: the call that it
// was told of puts everything in order and panics on, and a lease that was just acquired
// is released. On a goroutine of the client's own a panic ends the program, as it does in
// any other.
type Observer struct {
	// Queued: a claim waits, or the backend has told it that its place in the queue has
	// changed. A claim that waits behind others of its own client is reported when it
	// comes, and again when it is its turn to ask while others are still ahead.
	Queued func(QueuedEvent)
	// Refused: a claim ended without a lease. A try whose Err matches ErrHeld is a run
	// that was skipped.
	Refused func(RefusedEvent)
	// Acquired: a lease was granted.
	Acquired func(AcquiredEvent)
	// Released: a lease was released, as far as the backend could be told.
	Released func(ReleasedEvent)
	// Lost: a lease ended without a release. The client found out, or its Release did.
	Lost func(LostEvent)
	// Failed: a request to the backend failed. The client repeats it if there is still
	// time.
	Failed func(FailedEvent)
}

// Event is what all events have in common.
type Event struct {
	// Ctx carries the values of the call's ctx, for traces: that of Lock, TryLock or
	// ForceLock, and that of Release for Released. During the call it is that ctx;
	// afterwards it only has its values and never ends.
	Ctx context.Context
	// Claim is a number for one call of Lock, TryLock or ForceLock and the lease that it
	// got. It is the same in all their events, and different for any other claim of any
	// client or process. It is no secret. 0 where the event is about several.
	Claim uint64
	Name  string // what is locked; one of the names where it is about several
}

// QueuedEvent says that a claim waits.
type QueuedEvent struct {
	Event
	// Held says who is in the way, as far as this client has heard, and the claim's own
	// place in the queue: behind those ahead in the backend, by the last answer, and in
	// this client.
	Held *HeldError
}

// RefusedEvent says that a claim ended without a lease.
type RefusedEvent struct {
	Event
	Try    bool          // a call that does not wait: TryLock, TryDo, ...
	Waited time.Duration // how long it took
	Err    error         // what the call returns
}

// AcquiredEvent says that a lease was granted.
type AcquiredEvent struct {
	Event
	Lease  *Lease
	Waited time.Duration // how long it took
}

// ReleasedEvent says that a lease was released.
type ReleasedEvent struct {
	Event
	Lease *Lease
	Held  time.Duration // since it was granted
	// Err is what Release returns: nil, or that the backend could not be told. The client
	// then goes on trying until the lease would have expired. It is ErrDetached for a
	// lease that this process has left to another.
	Err error
}

// LostEvent says that a lease ended without a release.
type LostEvent struct {
	Event
	Lease *Lease
	Held  time.Duration // since it was granted
	Err   *LostError
}

// FailedEvent says that a request failed.
type FailedEvent struct {
	Event
	Op    Op  // OpAcquire, OpRenew or OpRelease
	Count int // how many claims it was about
	Err   error
}

// failed tells of a request that failed. e is of the claim that it was about, or of one
// of several; see aboutMany.
func (o *Observer) failed(e Event, op Op, count int, err error) {
	if o != nil && o.Failed != nil {
		o.Failed(FailedEvent{e, op, count, err})
	}
}

// aboutMany is the event of a request for several claims.
func aboutMany(name string) Event { return Event{Ctx: context.Background(), Name: name} }

// Observers joins observers: each event is told to all of them, in their order. Those
// that are nil are left out. One that panics keeps the event from those behind it.
func Observers(all ...*Observer) *Observer {
	joined := &Observer{}
	for _, o := range all {
		if o == nil {
			continue
		}
		joined.Queued = join(joined.Queued, o.Queued)
		joined.Refused = join(joined.Refused, o.Refused)
		joined.Acquired = join(joined.Acquired, o.Acquired)
		joined.Released = join(joined.Released, o.Released)
		joined.Lost = join(joined.Lost, o.Lost)
		joined.Failed = join(joined.Failed, o.Failed)
	}
	return joined
}

// join leaves out what is nil: the client does less where nobody is told.
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
