package quorumlock

import "github.com/pawl-go/pawl/driver"

// Watch implements driver.Watcher. It reports the changes of all nodes. A change is
// visible when a majority has it, and no node knows whether it is the last of that
// majority. So Watch may call f once for each node.
//
// If one node reports no changes, because it is down or its backend cannot push, that
// node may be the last of the majority. Then PushesChanges is false, and a client that
// watches has to poll as well.
func (d *quorum) Watch(name string, f func()) (stop func()) { return d.watchers.Watch(name, f) }

// watchNodes watches a name on all nodes; driver.Watchers calls it.
func (d *quorum) watchNodes(name string, f func()) (stop func()) {
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
