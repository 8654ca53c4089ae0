package etcdlock

import (
	"time"

	"github.com/pawl-go/pawl/internal/ticked"
	"github.com/pawl-go/pawl/locktable"
)

// Driver is the concrete type of the driver.
type Driver = lockDriver

// SetRetention sets a shorter retention time than the options allow, so that a test need
// not wait.
func (d *lockDriver) SetRetention(after time.Duration) { d.store.retention = after }

// ClockLag returns the time by which this client's reading of the shared clock is behind
// the machine's clock, or 0 while the shared clock is unknown.
func (d *lockDriver) ClockLag() time.Duration {
	now := time.Now()
	t, known := d.store.clock.Current()
	if !known {
		return 0
	}
	return now.Sub(t.ReadingAt(now).Time())
}

// TickAt returns the content of the clock's key if the clock has stood still since then.
func TickAt(then time.Time) string {
	return ticked.New().Next(ticked.Tick{}, locktable.At(then), ticked.IdleAdvance).Value
}
