package quorumlock_test

import (
	"testing"
	"time"
)

// Refusals contain nothing about the nodes' clocks. So the next grant still needs only
// one round trip.
func TestRefusalsDoNotReduceTheLeadOfProposedFences(t *testing.T) {
	for name, oneGrants := range map[string]bool{"NoNodeGrants": false, "OneNodeGrants": true} {
		inBubble(t, name, func(t *testing.T) {
			c := newCluster(3)
			for i := range c {
				c[i].skew = time.Duration(i) * 30 * time.Millisecond
			}
			one, _ := c.client(t, time.Millisecond)
			two, lines := c.client(t, time.Millisecond)
			holder := mutex("jobs")
			gets(t, one, holder)
			if oneGrants {
				c[0].forgets(t, holder)
			}
			for range 1000 {
				refused(t, two, mutex("jobs"))
			}
			releases(t, one, holder)
			time.Sleep(time.Second)
			resetCalls(lines)
			gets(t, two, mutex("jobs"))
			for i, l := range lines {
				if n := l.calls.Load(); n != 1 {
					t.Errorf("node %d got %d requests, want 1", i+1, n)
				}
			}
		})
	}
}
