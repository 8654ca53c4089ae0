package etcdlock

import (
	"context"
	"iter"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Inspect implements driver.Driver.
func (d *lockDriver) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	e, err := d.Driver.Inspect(ctx, name)
	dated(e.Holders, time.Now())
	return e, err
}

// List implements driver.Lister.
func (d *lockDriver) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		for e, err := range d.Driver.List(ctx, prefix) {
			dated(e.Holders, time.Now())
			if !yield(e, err) {
				return
			}
		}
	}
}

// dated corrects the Since of each holder, which is shown to people. The clock of a
// prefix stands still while no client is open, and so falls behind the time of day. A
// grant at noon could be shown as a grant in the morning. The fence of a grant is the
// time of day of its client, unless an earlier fence was ahead of that time.
func dated(holders []driver.Holder, now time.Time) {
	for i := range holders {
		at := time.UnixMicro(int64(holders[i].Fence))
		if at.After(holders[i].Since) && !at.After(now) {
			holders[i].Since = at
		}
	}
}
