package pawl

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/inbox"
	"github.com/pawl-go/pawl/internal/lazyctx"
	"github.com/pawl-go/pawl/internal/localqueue"
	"github.com/pawl-go/pawl/internal/trust"
)

// A claim is one call of Lock or TryLock: the driver's claim, and the state that this
// process keeps for it.
type claim struct {
	driver.Claim
	space   string          // the prefix of Name that Lease.Name does not show
	ctx     context.Context // the ctx of the call: a lease has its values, but does not end with it
	lockTTL time.Duration   // the TTL of the lock; Claim.TTL may be shorter, because of the maximum hold
	margin  time.Duration
	minHold time.Duration
	maxHold time.Duration
	health  func(ctx context.Context) error // nil: the lease is renewed without checks

	// lateAttemptEnd is the latest time, counted from core.epoch, at which an unanswered
	// attempt may arrive; 0 if all were answered. It keeps its value after the grant,
	// because an earlier attempt may still arrive. Nothing writes it after the grant.
	lateAttemptEnd time.Duration

	inbox       inbox.Inbox[*hold]
	waiter      waiter // the claim's place in the local queue; only a claim that waits has one
	passedLease *Lease // the lease that a holder of this process passed to the claim, or nil

	request lazyctx.Storage // memory for the context of the claim's Acquire
}

// A mode is the behaviour of a claim when the name is held.
type mode int

const (
	waiting mode = iota // joins the local queue and the backend's
	trying              // gives up at once
	forcing             // takes the name from its holders
)

// A waiter is a claim in the local queue of its name.
type waiter = localqueue.Waiter[*claim]

// marginOf returns the margin for a lease of this claim that lasts ttl. A lease that is
// granted from the queue lasts the QueueTTL until its first renewal, so ttl may be less
// than Claim.TTL.
func (c *claim) marginOf(ttl time.Duration) time.Duration {
	return max(c.margin, trust.DefaultMargin(ttl))
}

// exclusive reports whether the claim excludes all other leases.
func (c *claim) exclusive() bool { return c.Weight == driver.Exclusive }

// canShareLease reports whether a lease of this claim can be passed on to d: both ask for
// the same, and for no value, health check, minimum or maximum hold.
func (c *claim) canShareLease(d *claim) bool {
	return c.Weight == d.Weight && c.Limit == d.Limit && c.TTL == d.TTL && c.LockDelay == d.LockDelay &&
		c.margin == d.margin && c.maxHold == 0 && d.maxHold == 0 && c.minHold == 0 && d.minHold == 0 &&
		c.Value == nil && d.Value == nil && c.ValueBelow == nil && d.ValueBelow == nil && c.health == nil && d.health == nil &&
		c.Owner.Equal(d.Owner)
}

// event returns the part that all events of a claim share. ctx is the ctx of the call.
func (c *claim) event(ctx context.Context) Event {
	// The token is secret, and cannot be computed from this hash.
	hash := sha256.Sum256(c.Token[:])
	return Event{Ctx: ctx, Claim: max(binary.BigEndian.Uint64(hash[:]), 1), Name: c.Name}
}

// lateEvent returns an event for after the call: its Ctx has the values of ctx, and never
// ends.
func (c *claim) lateEvent() Event { return c.event(context.WithoutCancel(c.ctx)) }

func (o *Observer) reportQueued(c *claim, held *HeldError) {
	if o != nil && o.Queued != nil {
		o.Queued(QueuedEvent{c.event(c.ctx), held})
	}
}

func (o *Observer) reportNotAcquired(c *claim, m mode, waited time.Duration, err error) {
	if o != nil && o.NotAcquired != nil {
		o.NotAcquired(NotAcquiredEvent{c.event(c.ctx), m == trying, waited, err})
	}
}
