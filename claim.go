package pawl

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/inbox"
	"github.com/pawl-go/pawl/internal/lazyctx"
	"github.com/pawl-go/pawl/internal/localqueue"
	"github.com/pawl-go/pawl/internal/trust"
)

// A claim is one call of Lock or TryLock: what the backend is asked for, and what only
// this process knows.
type claim struct {
	driver.Claim
	space   string          // what Name begins with, and Lease.Name does not show
	ctx     context.Context // of the call: a lease has its values, but not its end
	ttl     time.Duration   // the lock's own: TTL is no longer than the maximum hold
	margin  time.Duration
	minHold time.Duration
	maxHold time.Duration
	health  func(ctx context.Context) error // nil: the lease is renewed whatever its holder does

	// The latest end of those attempts that were not answered, also when a later one was
	// granted, since core.born; 0 if all were. Nothing writes it once there is a lease.
	stray time.Duration

	inbox  inbox.Inbox[*hold]
	waiter waiter // its place in the local queue, unless it is a try
	passed *Lease // the lease that was passed to it there

	request lazyctx.Room // of its Acquire
}

// A mode is how a claim behaves when the name is held.
type mode int

const (
	waiting mode = iota // queues, here and in the backend
	trying              // gives up at once
	forcing             // takes it
)

// A waiter is a claim in the local queue of its name.
type waiter = localqueue.Waiter[*claim]

func newQueues(handoff time.Duration) *localqueue.Queues[*claim] {
	return localqueue.New[*claim](time.Now(), handoff, func(d time.Duration, f func()) func() bool {
		return time.AfterFunc(d, f).Stop
	})
}

// marginOf is the margin for a lease of this claim that lasts ttl, which may be less than
// the claim's own: one passed on from the queue lasts its QueueTTL at first.
func (c *claim) marginOf(ttl time.Duration) time.Duration {
	return max(c.margin, trust.DefaultMargin(ttl))
}

// exclusive reports whether no other lease can stand beside one of this claim.
func (c *claim) exclusive() bool { return c.Weight == driver.Exclusive }

// alike reports whether a lease of this claim can serve d as well, because d asked for
// the same.
func (c *claim) alike(d *claim) bool {
	return c.Weight == d.Weight && c.Limit == d.Limit && c.TTL == d.TTL && c.LockDelay == d.LockDelay &&
		c.margin == d.margin && c.maxHold == 0 && d.maxHold == 0 && c.minHold == 0 && d.minHold == 0 &&
		c.Value == nil && d.Value == nil && c.Above == nil && d.Above == nil && c.health == nil && d.health == nil &&
		maps.Equal(c.Owner.Labels, d.Owner.Labels)
}

// event is what all events of a claim have in common. ctx is that of the call.
func (c *claim) event(ctx context.Context) Event {
	// The token is secret, and cannot be found from this.
	hash := sha256.Sum256(c.Token[:])
	return Event{Ctx: ctx, Claim: max(binary.BigEndian.Uint64(hash[:]), 1), Name: c.Name}
}

// later is event when the call is over: its ctx's values are left of it.
func (c *claim) later() Event { return c.event(context.WithoutCancel(c.ctx)) }

// queued tells that a claim waits. o may be nil.
func (o *Observer) queued(c *claim, held *HeldError) {
	if o != nil && o.Queued != nil {
		o.Queued(QueuedEvent{c.event(c.ctx), held})
	}
}

// refused tells that a claim ended without a lease. o may be nil.
func (o *Observer) refused(c *claim, m mode, waited time.Duration, err error) {
	if o != nil && o.Refused != nil {
		o.Refused(RefusedEvent{c.event(c.ctx), m == trying, waited, err})
	}
}
