package redisscript

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Acquire implements driver.Driver.
func (d *Driver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := c.Validate(); err != nil {
		return driver.Grant{}, err
	}
	now := time.Now()
	if err := d.readyAt(ctx, now); err != nil {
		return driver.Grant{}, err
	}
	g, refused, err := d.acquire(ctx, now, &c)
	switch {
	case err != nil:
		return driver.Grant{}, d.trouble(ctx, "acquire", c.Name, err)
	case refused != nil:
		return driver.Grant{}, refused
	}
	return g, nil
}

// acquire is the way of a claim, down to the script, and of its answer up again.
func (d *Driver) acquire(ctx context.Context, now time.Time, c *driver.Claim) (g driver.Grant, refused, err error) {
	who, err := d.listen(ctx, c)
	if err != nil {
		return driver.Grant{}, nil, err
	}
	p := d.timely(ctx, now, c.Name, c, func(end int64) Reply { return d.claim(ctx, now, c, end, who) })
	g, refused, err = readClaim(p, c)
	now = time.Now()
	if err == nil && refused == nil {
		err = endedAt(ctx, now) // a grant that is shown too late is for nobody
	}
	if err == nil && refused == nil && d.WaitReplicas > 0 {
		err = d.confirm(ctx, c)
	}
	if d.tracking.answered(c, now, refused != nil, err); errors.Is(refused, driver.ErrValue) {
		d.tracking.over(c.Token) // it has lost its place
	}
	return g, refused, err
}

// listen comes before anything is claimed, for the signal may come before the answer that
// says "queued"; meanwhile the server is asked for the time, if that is not known. It
// returns what is stored of who claims.
func (d *Driver) listen(ctx context.Context, c *driver.Claim) (who string, err error) {
	asked := d.clock.begin()
	who, err = d.signals.open(ctx, c)
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

// claim sends a claim: together with other steps if that can be, else by itself.
func (d *Driver) claim(ctx context.Context, now time.Time, c *driver.Claim, end int64, who string) Reply {
	if isQuick(c) && d.shares(c.Name) {
		p, done := d.quickly(ctx, now, c.Name, quickStep{
			kind: quickAcquire, token: c.Token, end: end, terms: d.termsOf(c, who),
			fences: fencesOf(c), minFence: c.MinFence,
		})
		defer d.coalescer.leave()
		if done {
			return p
		}
	}
	d.tracking.claim(c)
	step, call := d.claimCall(c, end, who)
	return d.run(ctx, step, call)
}
