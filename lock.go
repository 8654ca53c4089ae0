package pawl

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/inbox"
	"github.com/pawl-go/pawl/internal/lazyctx"
	"github.com/pawl-go/pawl/internal/localqueue"
	"github.com/pawl-go/pawl/internal/trust"
)

// A lock is what Mutex, RWMutex and Semaphore have in common: a name, and how to claim
// it.
type lock struct {
	c    *Client
	name string
	o    lockOptions
}

func (c *Client) lock(name string, options []Option) lock {
	l := lock{c: c, name: name}
	if c != nil {
		l.o.ttl = c.settings.TTL
	}
	for _, set := range options {
		if set != nil { // so that one may be left out by a condition
			set(&l.o)
		}
	}
	return l
}

// errNotMade is said of what no constructor has made: a zero value, or a nil pointer.
var errNotMade = &InvalidError{What: "client", Problem: "is missing", Allowed: "one of Open or New, and locks that it makes"}

// Format implements fmt.Formatter: a lock knows its client, which holds tokens.
func (l lock) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "lock of %q", l.name) }

// A claim is one call of Lock or TryLock: what the backend is asked for, and what only
// this process knows.
type claim struct {
	driver.Claim
	ctx     context.Context // of the call: a lease has its values, but not its end
	ttl     time.Duration   // the lock's own: TTL is no longer than the maximum hold
	margin  time.Duration
	minHold time.Duration
	maxHold time.Duration
	health  func(ctx context.Context) error // nil: the lease is renewed whatever its holder does

	// The latest end of those attempts that were not answered, also when a later one was
	// granted, since Client.born; 0 if all were. Nobody writes it once there is a lease.
	stray time.Duration

	inbox  inbox.Inbox[*hold]
	waiter waiter // its place in the local queue, unless it is a try
	passed *Lease // the lease that was passed to it there

	request lazyctx.Room // of whoever asks the backend
}

// claim makes a new claim on the lock, checked, with a token of its own.
func (l *lock) claim(ctx context.Context, weight, limit int) (*claim, error) {
	if !l.c.made() {
		return nil, errNotMade
	}
	o, s := &l.o, &l.c.settings
	c := &claim{
		Claim: driver.Claim{
			Name: l.name, Token: driver.NewToken(), Owner: s.owner, Weight: weight, Limit: limit,
			TTL: o.ttl, QueueTTL: min(s.QueueTTL, max(o.ttl, driver.MinTTL)), LockDelay: o.lockDelay,
			Value: o.value, Above: o.above,
		},
		ctx: ctx, ttl: o.ttl, margin: o.margin, minHold: o.minHold, maxHold: o.maxHold, health: o.health,
	}
	if len(o.labels) > 0 {
		labels := maps.Clone(s.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, o.labels)
		c.Owner.Labels = labels
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := o.forOnce("a lock"); err != nil {
		return nil, err
	}
	if err := longEnough("TTL", c.TTL, l.c.facts); err != nil {
		return nil, err
	}
	if err := driver.ValidateDelay("minimum hold", c.minHold); err != nil {
		return nil, err
	}
	if c.maxHold != 0 {
		if err := driver.ValidateTTL("maximum hold", c.maxHold); err != nil {
			return nil, err
		}
		if err := longEnough("maximum hold", c.maxHold, l.c.facts); err != nil {
			return nil, err
		}
		if c.minHold > c.maxHold {
			return nil, &InvalidError{
				What: "minimum hold", Problem: "is " + c.minHold.String(), Allowed: "no more than the maximum hold, " + c.maxHold.String(),
			}
		}
		c.TTL = min(c.TTL, c.maxHold)
		c.QueueTTL = min(c.QueueTTL, c.TTL) // a grant that is passed on lasts that long, and no longer than it may
	}
	if c.margin < 0 || c.margin > c.TTL/2 {
		return nil, &InvalidError{
			What: "margin", Problem: "is " + c.margin.String(), Allowed: "0 to half of the TTL, and of the maximum hold",
		}
	}
	return c, nil
}

// marginOf is the margin for a lease of this claim that lasts ttl, which may be less than
// the claim's own: one passed on from the queue lasts its QueueTTL at first.
func (c *claim) marginOf(ttl time.Duration) time.Duration {
	return max(c.margin, trust.DefaultMargin(ttl))
}

// exclusive reports whether no other lease can stand beside one of this claim.
func (c *claim) exclusive() bool { return c.Weight == driver.Exclusive }

// alike reports whether a lease of this claim can serve d as well: nobody could tell them
// apart.
func (c *claim) alike(d *claim) bool {
	return c.Weight == d.Weight && c.Limit == d.Limit && c.TTL == d.TTL && c.LockDelay == d.LockDelay &&
		c.margin == d.margin && c.maxHold == 0 && d.maxHold == 0 && c.minHold == 0 && d.minHold == 0 &&
		c.Value == nil && d.Value == nil && c.Above == nil && d.Above == nil && c.health == nil && d.health == nil &&
		maps.Equal(c.Owner.Labels, d.Owner.Labels)
}

// A waiter is a claim in the local queue of its name.
type waiter = localqueue.Waiter[*claim]

func newQueues(handoff time.Duration) *localqueue.Queues[*claim] {
	return localqueue.New[*claim](time.Now(), handoff, func(d time.Duration, f func()) func() bool {
		return time.AfterFunc(d, f).Stop
	})
}
