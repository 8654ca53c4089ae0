package redisscript

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Break implements driver.LeaseBreaker.
func (d *Driver) Break(ctx context.Context, name string, fence uint64, delay time.Duration, by driver.Owner) error {
	err := errors.Join(driver.ValidateName(name), driver.ValidateDelay("delay", delay), by.Validate(), d.ready(ctx))
	if err != nil {
		return err
	}
	call := d.breakCall(name, fence, delay, by)
	p := d.atMostOnce(ctx, func() Reply { return run(ctx, d.conn, Break, call) })
	if p.Err != nil {
		return d.wrapErr(ctx, "break", name, p.Err)
	}
	return readEnd(p)
}
