package pawl

import (
	"context"
	"math/rand/v2"
	"time"
)

// Observer is told what happens to a client's locks, for logs, metrics and traces. Every field may be nil.
// The functions are called from the goroutine in which the thing happens, so they should be quick; they may
// be called by several at once. They may read the lease that they are told of, but neither release it nor close
// the client: both wait for them.
type Observer struct {
	// Waiting: a claim was told that the name is held, or that its place in the queue has changed.
	Waiting func(WaitingEvent)
	// Refused: a claim ended without a lease. For a try whose Err Is ErrHeld, that is a run that is skipped.
	Refused func(RefusedEvent)
	// Acquired: a lease was granted.
	Acquired func(AcquiredEvent)
	// Released: a lease was released.
	Released func(ReleasedEvent)
	// Lost: a lease ended without a release.
	Lost func(LostEvent)
	// Trouble: a request to the backend failed, and will be repeated if there is still time.
	Trouble func(TroubleEvent)
}

// An Event is what all that an Observer is told has in common.
type Event struct {
	// Ctx has the values of the ctx of the call that it is about, for traces: of Lock, TryLock and Steal, and for
	// Released of Release. It is that ctx itself while such a claim is under way, and never ends otherwise.
	Ctx context.Context
	// Claim is one call of Lock, TryLock or Steal, and the lease that it got: the same number in all that is told of
	// them, and another one for any other, whichever the client or process. It is random, and no secret. 0 where the
	// event is about several.
	Claim uint64
	Name  string // what is locked; one of them where it is about several
}

// WaitingEvent says that a claim waits.
type WaitingEvent struct {
	Event
	Held *HeldError // who is in the way, and the claim's own place in the queue
}

// RefusedEvent says that a claim ended without a lease.
type RefusedEvent struct {
	Event
	Try    bool          // it was a TryLock, TryDo or the like, which does not wait
	Waited time.Duration // how long it took
	Err    error         // what the call answers
}

// AcquiredEvent says that a lease was granted.
type AcquiredEvent struct {
	Event
	Lease  *Lease
	Waited time.Duration // how long that took
}

// ReleasedEvent says that a lease was released.
type ReleasedEvent struct {
	Event
	Lease *Lease
	Held  time.Duration // since it was granted
	// Err is what Release answers: nil; it was no longer held (ErrLost); or the backend could not be told, and the
	// client goes on trying until the lease would have expired.
	Err error
}

// LostEvent says that a lease ended without a release.
type LostEvent struct {
	Event
	Lease *Lease
	Held  time.Duration // since it was granted
	Err   *LostError
}

// TroubleEvent says that a request failed.
type TroubleEvent struct {
	Event
	Op    string // "acquire", "renew" or "release"
	Count int    // how many claims it was about
	Err   error
}

// event begins what is told of a claim. ctx is that of the call.
func (c *claim) event(ctx context.Context) Event { return Event{Ctx: ctx, Claim: c.id, Name: c.Name} }

// later is event when the call is over: its ctx's values are left of it.
func (c *claim) later() Event { return c.event(context.WithoutCancel(c.ctx)) }

// newClaimID makes a number for Event.Claim. It has nothing to do with the token, which is secret.
func newClaimID() uint64 { return max(rand.Uint64(), 1) }

func (o *Observer) waiting(c *claim, held *HeldError) {
	if o != nil && o.Waiting != nil {
		o.Waiting(WaitingEvent{c.event(c.ctx), held})
	}
}

func (o *Observer) refused(c *claim, m mode, waited time.Duration, err error) {
	if o != nil && o.Refused != nil {
		o.Refused(RefusedEvent{c.event(c.ctx), m == trying, waited, err})
	}
}

func (o *Observer) acquired(l *Lease, waited time.Duration) {
	if o != nil && o.Acquired != nil {
		o.Acquired(AcquiredEvent{l.claim.event(l.claim.ctx), l, waited})
	}
}

func (o *Observer) released(ctx context.Context, l *Lease, err error) {
	if o != nil && o.Released != nil {
		o.Released(ReleasedEvent{l.claim.event(context.WithoutCancel(ctx)), l, time.Since(l.begun), err})
	}
}

func (o *Observer) lost(l *Lease, err *LostError) {
	if o != nil && o.Lost != nil {
		o.Lost(LostEvent{l.claim.later(), l, time.Since(l.begun), err})
	}
}

// trouble tells of a request that failed. e is of the claim that it was about, or of one of several; see aboutMany.
func (o *Observer) trouble(e Event, op string, count int, err error) {
	if o != nil && o.Trouble != nil {
		o.Trouble(TroubleEvent{e, op, count, err})
	}
}

// aboutMany is the event of a request for several claims, or for one of which only the name is known by now.
func aboutMany(name string) Event { return Event{Ctx: context.Background(), Name: name} }
