package locktable_test

import (
	"testing"

	"pgregory.net/rapid"
)

// All rules hold for all other operations if fences are raised between them.
func TestTheRulesHoldIfFencesAreRaised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, choose := newFixture(t), rapidChooser(t)
		for range steps(t) {
			if o := l.next(choose, false); choose("raise", 4) == 0 {
				_, _ = l.raise(pick(choose, "who", clients...), max(1, l.e.Fence+uint64(choose("by", 5))-2))
			} else {
				l.do(o)
			}
		}
	})
}
