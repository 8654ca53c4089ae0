package report

import (
	"testing"
)

// The timeline of a large history has the claims of the violation and all abnormal
// claims. Its gaps show where it omits claims.
func TestThinning(t *testing.T) {
	m := makeHistory(plan{leases: 15_000, faults: 10, seconds: 100})
	m.plantOverlap("b", .5)
	const limit = 3000
	s := newStory(m.history())
	if len(s.claims) < 2*limit {
		t.Fatalf("the history has only %d claims", len(s.claims))
	}
	d := s.chooseClaims(m.v, limit)
	if len(d.claims) > limit || len(d.claims) < limit*9/10 {
		t.Errorf("%d claims are drawn, want nearly %d", len(d.claims), limit)
	}
	if drawn, all := s.countAbnormal(d); drawn != all || drawn == 0 {
		t.Errorf("%d of %d abnormal claims are drawn", drawn, all)
	}
	drawn := map[int64]bool{}
	for i, at := range d.claims {
		if i > 0 && at <= d.claims[i-1] {
			t.Fatal("the indexes of the claims do not ascend")
		}
		drawn[s.claims[at].ID] = true
	}
	for _, id := range m.v.Violations[0].Claims {
		if !drawn[id] {
			t.Errorf("claim %d of the violation is not drawn", id)
		}
	}
	inGap := func(t int64) bool {
		for _, g := range d.gaps {
			if g[0] <= t && t <= g[1] {
				return true
			}
		}
		return false
	}
	for i := range s.claims {
		c := &s.claims[i]
		if !drawn[c.ID] && (!inGap(c.Asked) || !inGap(c.lastTime())) {
			t.Fatalf("claim %d is omitted but not in a gap", c.ID)
		}
		if c.Asked >= d.sample[0] && c.Asked <= d.sample[1] && !drawn[c.ID] {
			t.Fatalf("claim %d of the sample is omitted", c.ID)
		}
	}
	x := m.v.Violations[0]
	if inGap(x.From) || inGap(x.To) {
		t.Error("the violation is in a gap")
	}
}

// If limit claims are abnormal, the timeline omits some of them.
func TestThinningOfManyLosses(t *testing.T) {
	m := makeHistory(plan{leases: 15_000, seconds: 100})
	for _, l := range m.lines {
		if l.Claim != nil && l.Claim.Got > 0 {
			l.Claim.Lost = l.Claim.Released
		}
	}
	s := newStory(m.history())
	d := s.chooseClaims(m.v, 3000)
	if drawn, all := s.countAbnormal(d); len(d.claims) > 3000 || drawn >= all {
		t.Errorf("%d claims are drawn, %d of %d abnormal ones", len(d.claims), drawn, all)
	}
}
