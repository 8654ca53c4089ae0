package quorumlock

import "github.com/pawl-go/pawl/driver"

// Watch implements driver.Watcher. What any node tells is passed on: a change shows when
// a majority has it, and none of the nodes knows whether it is the one that makes it so.
// So a change may be told once for each node.
//
// Where a node tells nothing, be it down or one of a backend without push, it could be
// that one, and whoever watches has to ask as well: PushesChanges is false then.
func (d *Driver) Watch(name string, f func()) (stop func()) { return d.watchers.Watch(name, f) }

// follow is what driver.Watchers wants of it.
func (d *Driver) follow(name string, f func()) (stop func()) {
	var stops []func()
	for _, n := range d.nodes {
		if w, ok := driver.As[driver.Watcher](n.Driver); ok {
			stops = append(stops, w.Watch(name, f))
		}
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}
