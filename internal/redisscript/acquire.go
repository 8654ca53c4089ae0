package redisscript

import (
	"context"
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
	claimant, err := d.subscribeForClaim(ctx, &c)
	if err != nil {
		return driver.Grant{}, d.wrapErr(ctx, "acquire", c.Name, err)
	}
	resend := func(end time.Time) bool { return d.mayResendClaim(&c, end) }
	p := d.runWithEnd(ctx, now, c.Name, resend, func(end int64) Reply { return d.claim(ctx, now, &c, end, claimant) })
	g, refused, err := readClaim(p, &c)
	now = time.Now()
	if err == nil && refused == nil {
		err = ctxErrAt(ctx, now) // an error if the caller has given up; its client then releases the claim
	}
	if err == nil && refused == nil && d.WaitReplicas > 0 {
		err = d.confirm(ctx, &c)
	}
	d.tracking.recordAnswer(&c, now, refused, err)
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
func (d *Driver) subscribeForClaim(ctx context.Context, c *driver.Claim) (claimant string, err error) {
	answered := d.clock.askIfUnknown()
	inbox, shard, err := d.signals.channelsFor(ctx, c)
	if err != nil {
		return "", err
	}
	if answered != nil {
		_, err = await(ctx, d.conn.bounds, answered)
	}
	return d.signals.claimantArg(inbox, shard, c), err
}

// claim sends a claim: in a common script with other steps if possible, otherwise alone.
func (d *Driver) claim(ctx context.Context, now time.Time, c *driver.Claim, end int64, claimant string) Reply {
	sendAlone := func() Reply {
		d.tracking.addClaim(c)
		s, call := d.claimCall(c, end, claimant)
		return run(ctx, d.conn, s, call)
	}
	if d.client.Cluster || !isQuick(c) {
		return sendAlone()
	}
	return d.coalescer.do(ctx, now, &quickStep{claim: *c, claimant: claimant, end: end}, sendAlone)
}
