package redisscript

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Release implements driver.Driver.
func (d *Driver) Release(ctx context.Context, l driver.LeaseRef) error {
	err := errors.Join(driver.ValidateName(l.Name), driver.ValidateDelay("minimum hold", l.MinHold), driver.ValidateValue(l.Value))
	if err != nil {
		return err
	}
	now := time.Now()
	if err := d.readyAt(ctx, now); err != nil {
		return err
	}
	d.tracking.forgetToken(l.Token)
	d.unanswered.recordRelease(l.Token)
	var p Reply
	if hasEnd(&l) {
		p = d.runWithEnd(ctx, now, l.Name, nil, func(end int64) Reply { return d.release(ctx, now, &l, end) })
	} else {
		p = d.atMostOnce(ctx, func() Reply { return d.release(ctx, now, &l, 0) })
	}
	if p.Err != nil {
		return d.wrapErr(ctx, "release", l.Name, p.Err)
	}
	return readEnd(p)
}

// release sends a release: in a common script with other steps if possible, or alone.
func (d *Driver) release(ctx context.Context, now time.Time, l *driver.LeaseRef, end int64) Reply {
	sendAlone := func() Reply { return run(ctx, d.conn, Release, d.releaseCall(l, end)) }
	if d.client.Cluster || hasEnd(l) || l.MinHold > 0 {
		return sendAlone()
	}
	return d.coalescer.do(ctx, now, &quickStep{claim: driver.Claim{Name: l.Name, Token: l.Token}}, sendAlone)
}
