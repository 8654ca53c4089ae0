package quorumlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

// A program that ends right after a release leaves nothing on a slow node, unless the
// node does not answer for a second.
func TestCloseWaitsForReleasesThatAreUnderWay(t *testing.T) {
	for late, want := range map[time.Duration][]int{300 * time.Millisecond: {0, 0, 0}, time.Minute: {0, 0, 1}} {
		bubble.Test(t, func(t *testing.T) {
			servers := newCluster(3)
			d, lines := servers.client(t, time.Millisecond)
			claim := mutex("jobs")
			mustAcquire(t, d, claim)
			time.Sleep(time.Second) // the acquire has reached all nodes
			lines[2].requestDelay.Store(int64(late))
			mustRelease(t, d, claim)
			began := time.Now()
			noError(t, d.Close())
			if took := time.Since(began); took > time.Second {
				t.Errorf("Close took %v", took)
			}
			if holders, _ := servers.countPerServer(t, "jobs"); !slices.Equal(holders, want) {
				t.Errorf("%v late: holders on the nodes: %d; want %d", late, holders, want)
			}
		})
	}
}
