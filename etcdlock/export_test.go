package etcdlock

import (
	"time"

	"github.com/pawl-go/pawl/locktable"
)

// Driver is the driver, with all that it can do.
type Driver = lockDriver

// Forgets makes the driver forget names after a time that is shorter than any option
// allows, so that a test need not wait.
func (d *lockDriver) Forgets(after time.Duration) { d.store.forget = after }

// TickAt is the content of the key of a clock that has stood still since then.
func TickAt(then time.Time) string { return newTick(tick{}, locktable.At(then), idleAdvance).value }
