package etcdlock

import "time"

// Forgets makes the driver forget names after a time that no option allows, because a
// test would have to wait for it.
func (d *Driver) Forgets(after time.Duration) { d.store.forget = after }
