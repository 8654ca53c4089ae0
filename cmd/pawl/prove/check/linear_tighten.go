package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// tighten narrows the times of the leases to the times that their order allows. It does
// not change which histories have an explanation, but allows smaller pieces. Otherwise a
// long wait would put all events during the wait into one piece.
//
// A lease begins after all earlier leases have begun, and after enough of them can have
// ended. It begins before the next lease, and ends before a later lease that excludes it
// begins. If no time is left, no order explains the answers, and tighten returns the
// reason.
func (s *nameHistory) tighten() (clash *Violation) {
	if clash := s.narrowEarliest(); clash != nil {
		return clash
	}
	return s.narrowLatest()
}

// narrowEarliest narrows the earliest times.
func (s *nameHistory) narrowEarliest() (clash *Violation) {
	var held []int // leases that have begun, and surely have not ended
	at := int64(0)
	latest := -1 // the lease that determines at
	for k := range s.leases {
		l := &s.leases[k]
		if k > 0 && l.claim.Fence != 0 && l.claim.Fence == s.leases[k-1].claim.Fence {
			return s.clashed(k-1, k)
		}
		if l.beginFrom >= at {
			at, latest = l.beginFrom, k
		}
		held = slices.DeleteFunc(held, func(j int) bool { return s.leases[j].endFrom <= at })
		if j := s.lastToEnd(held, l.claim); j >= 0 {
			at, latest = s.leases[j].endFrom, j
		}
		l.beginFrom = at
		l.endFrom = max(l.endFrom, at)
		if at > l.beginTo {
			return s.clashed(latest, k)
		}
		held = append(held, k)
	}
	return nil
}

// lastToEnd returns the last lease that must end before a claim fits beside the rest, if
// leases end in the order of endFrom. It returns -1 if the claim fits now.
func (s *nameHistory) lastToEnd(held []int, c *history.Claim) int {
	slices.SortFunc(held, func(a, b int) int { return cmp.Compare(s.leases[a].endFrom, s.leases[b].endFrom) })
	weight := c.Weight
	for _, j := range held {
		if h := s.leases[j].claim; h.Mode == history.Permits {
			weight += h.Weight
		}
	}
	last := -1
	for _, j := range held {
		h := s.leases[j].claim
		full := c.Mode == history.Permits && weight > s.name.Limit
		if s.name.excludes(h, c) || h.Mode == history.Permits && full {
			last = j
		}
		if h.Mode == history.Permits {
			weight -= h.Weight
		}
	}
	return last
}

// narrowLatest narrows the latest times.
func (s *nameHistory) narrowLatest() (clash *Violation) {
	next := map[class]int{} // the first lease of the class after k
	at, earliest := int64(math.MaxInt64), -1
	for k := range slices.Backward(s.leases) {
		l := &s.leases[k]
		for _, j := range next {
			if s.name.excludes(l.claim, s.leases[j].claim) && s.leases[j].beginTo < l.endTo {
				l.endTo = s.leases[j].beginTo
				if l.endFrom > l.endTo {
					return s.clashed(k, j)
				}
			}
		}
		l.beginTo = min(l.beginTo, l.endTo)
		if l.beginTo <= at {
			at, earliest = l.beginTo, k
		}
		l.beginTo = at
		if l.beginFrom > l.beginTo {
			return s.clashed(earliest, k)
		}
		next[classOf(l.claim)] = k
	}
	return nil
}

// clashed returns a violation: the leases j and k leave no time for each other.
func (s *nameHistory) clashed(j, k int) *Violation {
	a, b := s.leases[min(j, k)].claim, s.leases[max(j, k)].claim
	v := &Violation{From: min(a.Got, b.Got), To: max(a.Got, b.Got), Claims: ids(a, b)}
	switch {
	case j == k:
		v.Claims = ids(a)
		v.Text = fmt.Sprintf("%s got it at %s, but the leases after it leave no time for that.", upper{a}, at(a.Got))
	case a.Fence == 0:
		v.Text = fmt.Sprintf("%s got it at %s, and %s got it at %s. Their times leave no room for both.",
			upper{a}, at(a.Got), who{b}, at(b.Got))
	case a.Fence == b.Fence:
		v.Text = fmt.Sprintf("%s got it at %s, and %s got it at %s. Both have the fence %d.",
			upper{a}, at(a.Got), who{b}, at(b.Got), a.Fence)
	default:
		v.Text = fmt.Sprintf("%s got it at %s with the fence %d, and %s got it at %s with the fence %d. "+
			"So the first fence was granted first, but their times leave no room for that.",
			upper{a}, at(a.Got), a.Fence, who{b}, at(b.Got), b.Fence)
	}
	return v
}
