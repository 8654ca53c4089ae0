package quorumlock_test

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/quorumlock"
)

// Nodes that are down tell nothing, and the others do.
func TestAWatchReportsChangesWithoutAMinority(t *testing.T) {
	c := newCluster(3)
	a, lines := c.client(t)
	b, _ := c.client(t)
	told := make(chan struct{}, 100)
	t.Cleanup(b.Watch("job", func() { told <- struct{}{} }))
	if !b.Properties().PushesChanges {
		t.Error("PushesChanges is false")
	}
	for i := range lines {
		lines[i].down.Store(true)
		for len(told) > 0 {
			<-told
		}
		x := mutex("job")
		gets(t, a, x)
		if len(told) < 2 {
			t.Errorf("without node %d a grant was told %d times; a majority knows of it", i+1, len(told))
		}
		releases(t, a, x)
		lines[i].down.Store(false)
	}
}

// quiet is a node of a backend that tells nothing.
type quiet struct{ *line }

func (q quiet) Properties() driver.Properties {
	p := q.line.Properties()
	p.PushesChanges = false
	return p
}

// The vote of a node that reports no changes may be the one that completes a change, so a
// client that watches has to poll.
func TestPushesChangesIsFalseIfANodeCannotPush(t *testing.T) {
	c := newCluster(3)
	d, err := asDriver(quorumlock.New([]driver.Driver{c[0].connect(0), quiet{c[1].connect(0)}, c[2].connect(0)}, nil))
	noError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	if d.Properties().PushesChanges {
		t.Error("PushesChanges is true")
	}
}

func TestAWatchEndsWithItsQuorum(t *testing.T) {
	server := memlock.NewMemory(nil)
	d, err := asDriver(quorumlock.New([]driver.Driver{server.Driver()}, nil))
	noError(t, err)
	told := 0
	stop := d.Watch("job", func() { told++ })
	noError(t, d.Close())
	gets(t, server.Driver(), mutex("job"))
	stop()
	if told != 0 {
		t.Errorf("told %d times after Close", told)
	}
}
