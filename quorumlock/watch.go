package quorumlock

import "github.com/pawl-go/pawl/driver"

// Watch implements driver.Watcher. It passes on the changes of all nodes. A change is
// visible when a majority has it, and no node knows whether it completes the majority. So
// Watch may call f once for each node.
//
// If a node reports no changes, because it is down or its backend cannot push, it could
// be the node that completes the majority. Then PushesChanges is false, and a client that
// watches has to poll as well.
func (d *quorum) Watch(name string, f func()) (stop func()) { return d.watchers.Watch(name, f) }

// follow is the function for driver.Watchers.
func (d *quorum) follow(name string, f func()) (stop func()) {
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
