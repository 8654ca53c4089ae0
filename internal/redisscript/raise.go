package redisscript

import (
	"context"
	"errors"

	"github.com/pawl-go/pawl/driver"
)

// RaiseFence implements driver.FenceRaiser.
func (d *Driver) RaiseFence(ctx context.Context, l driver.LeaseRef, fence uint64) (uint64, error) {
	err := errors.Join(driver.ValidateName(l.Name), driver.ValidateFence(fence), driver.ValidateValue(l.Value), d.ready(ctx))
	if err != nil {
		return 0, err
	}
	d.tracking.disarm(l.Token)
	raise := d.raiseCall(&l, fence)
	p := d.resendIfLost(ctx, func() Reply { return run(ctx, d.conn, Raise, raise) })
	d.tracking.recordHeld(l.Token, 0)
	switch {
	case p.Err != nil:
		return 0, d.wrapErr(ctx, "raise", l.Name, p.Err)
	case p.Text == "" && p.Int > 0:
		return uint64(p.Int), nil
	case isRefusal(p):
		held, err := readRefusal(p.Text, l.Name)
		if err != nil {
			return 0, d.wrapErr(ctx, "raise", l.Name, err)
		}
		return 0, held
	}
	return 0, readEnd(p)
}
