package drivertest

import (
	"testing"

	"pgregory.net/rapid"
)

// A quorum answers once a majority has. At a slow node the next claim may arrive before
// this one; then the nodes agree on a higher fence than a single server grants.
func TestAQuorumMayGrantAHigherFence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &randomCase{k: &kit{suite: &suite{Harness: Harness{IsQuorum: true}}}, fences: map[string][]fencePair{}, fencesEqual: true}
		r.wantSameOrder(t, "x", fencePair{383, 383})
		r.wantSameOrder(t, "x", fencePair{436, 384})
		r.wantSameOrder(t, "x", fencePair{437, 385})
	})
}
