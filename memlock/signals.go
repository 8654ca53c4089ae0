package memlock

import "github.com/pawl-go/pawl/locktable"

// deliver sends the signals of a step. The caller must have unlocked the shard, because
// the receiver of a signal may call the driver again at once.
func (t *table) deliver(signals []locktable.Signal) {
	for _, s := range signals {
		if d, open := t.drivers.Load(s.Inbox); open {
			d.(*locktable.GroupedDriver).Deliver(s.Signal) //nolint:forcetypeassert // drivers has only these
		}
	}
}

// Watch implements locktable.Watchable.
func (t *table) Watch(name string, f func()) (stop func()) { return t.watchers.Watch(name, f) }
