package pawl

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A lock has the fields that all locks share: a name, and the options of a claim.
type lock struct {
	c    *core  // nil if New has not made the client
	name string // as it is stored
	o    lockOptions

	space        string // the prefix of name; see Client.Namespace
	namespaceErr error  // the error of a bad namespace
}

// Format implements fmt.Formatter: no verb prints the tokens of the lock's client.
func (l lock) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "lock of %q", l.name) }

// acquire implements every Lock, TryLock and ForceLock.
func (l *lock) acquire(ctx context.Context, weight, limit int, m mode) (*Lease, error) {
	if l == nil {
		return nil, errNotMade
	}
	if ctx == nil {
		return nil, errNoContext
	}
	cl, err := l.claim(ctx, weight, limit)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := l.c
	if !c.claims.enter() {
		return nil, ErrClosed
	}
	defer c.claims.leave()
	if m == waiting && l.o.wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.o.wait)
		defer cancel()
	}

	if c.observer == nil {
		return c.acquire(ctx, cl, m)
	}
	began := time.Now()
	lease, err := c.acquire(ctx, cl, m)
	if err != nil {
		c.observer.reportNotAcquired(cl, m, time.Since(began), err)
		return nil, err
	}
	lease.announce(c.epoch.Add(lease.beginOffset).Sub(began))
	return lease, nil
}

// shortName returns the name without its namespace.
func (l *lock) shortName() string { return l.name[len(l.space):] }

// checkName refuses a bad namespace, an empty name, and a name that is too long.
func (l *lock) checkName() error {
	switch {
	case l.namespaceErr != nil:
		return l.namespaceErr
	case l.shortName() == "":
		return driver.ValidateName("")
	case l.space != "":
		return checkNameSize(l.space, l.shortName())
	}
	return nil
}

// checkNameSize refuses a name that is too long together with its namespace.
func checkNameSize(space, name string) error {
	if len(space)+len(name) <= driver.MaxName {
		return nil
	}
	return invalid("name", fmt.Sprintf("has %d bytes with its namespace %s", len(space)+len(name), space),
		fmt.Sprintf("1 to %d bytes together", driver.MaxName))
}

// claim makes and checks a new claim on the lock, with a token of its own.
func (l *lock) claim(ctx context.Context, weight, limit int) (*claim, error) {
	if l.c == nil {
		return nil, errNotMade
	}
	if err := l.checkName(); err != nil {
		return nil, err
	}
	o, s := &l.o, &l.c.settings
	c := &claim{
		Claim: driver.Claim{
			Name: l.name, Token: driver.NewToken(), Owner: o.owner, Weight: weight, Limit: limit,
			TTL: o.ttl, QueueTTL: min(s.QueueTTL, max(o.ttl, driver.MinTTL)), LockDelay: o.lockDelay,
			Value: o.value, ValueBelow: o.valueBelow,
		},
		space: l.space, ctx: ctx, lockTTL: o.ttl, margin: o.margin, minHold: o.minHold, maxHold: o.maxHold, health: o.health,
	}
	switch err := c.Validate(); {
	case err != nil:
		return nil, err
	case o.nilHealth:
		return nil, invalid("WithHealth", "has no function", "a function; without checks, leave it out")
	case o.wait < 0:
		return nil, invalid("WithWait", "is 0 or less", "more than 0; TryLock does not wait")
	}
	if err := cmp.Or(checkMinTTL("TTL", c.TTL, l.c.properties), driver.ValidateDelay("minimum hold", c.minHold)); err != nil {
		return nil, err
	}
	if c.maxHold != 0 {
		err := cmp.Or(driver.ValidateTTL("maximum hold", c.maxHold), checkMinTTL("maximum hold", c.maxHold, l.c.properties))
		if err == nil && c.minHold > c.maxHold {
			err = invalid("minimum hold", "is "+c.minHold.String(), "no more than the maximum hold, "+c.maxHold.String())
		}
		if err != nil {
			return nil, err
		}
		c.TTL = min(c.TTL, c.maxHold)
		c.QueueTTL = min(c.QueueTTL, c.TTL) // a grant from the queue lasts QueueTTL at first
	}
	if c.margin < 0 || c.margin > c.TTL/2 {
		return nil, invalid("grace", "is "+c.margin.String(), "0 to half of the TTL, and of the maximum hold")
	}
	return c, nil
}
