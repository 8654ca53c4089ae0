package etcdlock

import (
	"time"

	"github.com/pawl-go/pawl/locktable"
)

// Forgets makes the driver forget names after a time that no option allows, because a
// test would have to wait for it.
func (d *Driver) Forgets(after time.Duration) { d.store.forget = after }

// TickAt is what the key of a clock says that has stood still since then.
func TickAt(then time.Time) string { return newTick(tick{}, locktable.At(then), rest).value }
