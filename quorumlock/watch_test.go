package quorumlock_test

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
)

// One node is down, and the others report changes.
func TestAWatchReportsChangesWithoutAMinority(t *testing.T) {
	servers := newCluster(3)
	locker, lines := servers.client(t)
	watcher, _ := servers.client(t)
	notified := make(chan struct{}, 100)
	t.Cleanup(watcher.Watch("job", func() { notified <- struct{}{} }))
	if !watcher.Properties().PushesChanges {
		t.Error("PushesChanges is false")
	}
	for i := range lines {
		lines[i].down.Store(true)
		for len(notified) > 0 {
			<-notified
		}
		claim := mutex("job")
		mustAcquire(t, locker, claim)
		if len(notified) < 2 {
			t.Errorf("without node %d a grant caused %d notifications; want one from each of a majority", i+1, len(notified))
		}
		mustRelease(t, locker, claim)
		lines[i].down.Store(false)
	}
}

// A silentNode reports no changes.
type silentNode struct{ *line }

func (q silentNode) Properties() driver.Properties {
	p := q.line.Properties()
	p.PushesChanges = false
	return p
}

// The vote of a node that reports no changes may complete a change, so a client that
// watches has to poll.
func TestPushesChangesIsFalseIfANodeCannotPush(t *testing.T) {
	servers := newCluster(3)
	d := quorumOf(t, nil, servers[0].connect(0), silentNode{servers[1].connect(0)}, servers[2].connect(0))
	if d.Properties().PushesChanges {
		t.Error("PushesChanges is true")
	}
}
