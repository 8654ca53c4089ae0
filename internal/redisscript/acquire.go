package redisscript

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Acquire implements driver.Driver. It prepares a claim, sends it and reads the answer.
// With WaitReplicas, it then waits until replicas acknowledge the grant.
func (d *Driver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := c.Validate(); err != nil {
		return driver.Grant{}, err
	}
	now := time.Now()
	if err := d.readyAt(ctx, now); err != nil {
		return driver.Grant{}, err
	}
	who, err := d.subscribeForClaim(ctx, &c)
	if err != nil {
		return driver.Grant{}, d.wrapErr(ctx, "acquire", c.Name, err)
	}
	resend := func(end time.Time) bool { return d.unanswered.add(&c, end) }
	p := d.runWithEnd(ctx, now, c.Name, resend, func(end int64) Reply { return d.claim(ctx, now, &c, end, who) })
	g, refused, err := readClaim(p, &c)
	now = time.Now()
	if err == nil && refused == nil {
		err = endedAt(ctx, now) // an error if the caller has given up; its client releases the claim
	}
	if err == nil && refused == nil && d.WaitReplicas > 0 {
		err = d.confirm(ctx, &c)
	}
	if d.tracking.answered(&c, now, refused != nil, err); errors.Is(refused, driver.ErrValueNotBelow) {
		d.tracking.forgetToken(c.Token) // the script took the claim out of the queue
	}
	switch {
	case err != nil:
		return driver.Grant{}, d.wrapErr(ctx, "acquire", c.Name, err)
	case refused != nil:
		return driver.Grant{}, refused
	}
	return g, nil
}

// subscribeForClaim subscribes before the claim is sent, because the signal may arrive
// before the answer that says "queued". Meanwhile it asks the server for the time, if the
// driver does not know that. It returns the stored form of the claimant.
func (d *Driver) subscribeForClaim(ctx context.Context, c *driver.Claim) (who string, err error) {
	asked := d.clock.begin()
	who, err = d.signals.subscribeFor(ctx, c)
	if err != nil || asked == nil {
		return who, err
	}
	select {
	case <-asked:
		return who, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// claim sends a claim: in a common script with other steps if possible, otherwise alone.
func (d *Driver) claim(ctx context.Context, now time.Time, c *driver.Claim, end int64, who string) Reply {
	if isQuick(c) && d.canSendTogether(c.Name) {
		p, done := d.sendTogether(ctx, now, c.Name, quickStep{
			token: c.Token, end: end, terms: d.termsOf(c, who), fences: fencesOf(c), minFence: c.MinFence,
		})
		defer d.coalescer.endStep()
		if done {
			return p
		}
	}
	d.tracking.claim(c)
	step, call := d.claimCall(c, end, who)
	return d.run(ctx, step, call)
}
