package drivertest

import (
	"testing"

	"pgregory.net/rapid"
)

// A quorum answers when a majority has. At the node that lags, the next claim may come
// before this one, and then the nodes agree on a higher fence than one server gives.
func TestAQuorumMayGrantAHigherFence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &random{k: &kit{s: &suite{Harness: Harness{WritesLate: true}}}, fences: map[string][]pair{}, fencesEqual: true}
		r.wantSameOrder(t, "x", pair{383, 383})
		r.wantSameOrder(t, "x", pair{436, 384})
		r.wantSameOrder(t, "x", pair{437, 385})
	})
}
