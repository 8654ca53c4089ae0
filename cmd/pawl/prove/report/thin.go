package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
)

// maxDrawn is the largest number of claims in the timeline. With it, a browser draws
// quickly, and the file has less than 10 MB.
const maxDrawn = 60_000

// A choice is the part of a story that the timeline draws.
type choice struct {
	claims []int      // indexes of story.claims, ascending
	sample [2]int64   // the period in which all claims are drawn
	gaps   [][2]int64 // the periods in which some claims are omitted

	chosen []bool // for each claim of the story
	room   int    // the number of claims that may still be chosen
}

func (d *choice) take(i int) {
	if !d.chosen[i] && d.room > 0 {
		d.chosen[i] = true
		d.room--
	}
}

// chooseClaims chooses at most limit claims for the timeline.
func (s *story) chooseClaims(v *check.Verdict, limit int) *choice {
	d := &choice{chosen: make([]bool, len(s.claims)), room: limit}
	if len(s.claims) <= limit {
		for i := range s.claims {
			d.take(i)
		}
	} else {
		s.pick(d, v)
	}
	for i, chosen := range d.chosen {
		if chosen {
			d.claims = append(d.claims, i)
		}
	}
	return d
}

// pick chooses the claims of violations, abnormal claims, all claims of a short period,
// and the claims nearest to violations and to the begins and ends of faults.
func (s *story) pick(d *choice, v *check.Verdict) {
	inViolation := map[int64]bool{}
	var violations, faultEnds []int64
	for _, x := range v.Violations {
		violations = append(violations, x.From, x.To)
		for _, id := range x.Claims {
			inViolation[id] = true
		}
	}
	for _, f := range s.faults {
		faultEnds = append(faultEnds, f.From, f.To)
	}
	var abnormal []int
	for i := range s.claims {
		switch c := &s.claims[i]; {
		case inViolation[c.ID]:
			d.take(i)
		case c.isAbnormal():
			abnormal = append(abnormal, i)
		}
	}
	for _, i := range thinned(abnormal, d.room*2/3) {
		d.take(i)
	}
	s.sample(d)
	s.nearest(d, violations, d.room/2)
	s.nearest(d, faultEnds, d.room)
	s.gaps(d)
}

// countAbnormal returns the numbers of drawn abnormal claims and of all abnormal claims.
func (s *story) countAbnormal(d *choice) (drawn, all int) {
	for _, i := range d.claims {
		if s.claims[i].isAbnormal() {
			drawn++
		}
	}
	return drawn, s.count((*claim).isAbnormal)
}

// thinned returns at most n elements of a list, evenly distributed.
func thinned(list []int, n int) []int {
	if len(list) <= n {
		return list
	}
	some := make([]int, n)
	for i := range some {
		some[i] = list[i*len(list)/n]
	}
	return some
}

// sample fills a third of the room: with all claims of a period in the middle of the run.
func (s *story) sample(d *choice) {
	middle := s.Last / 2
	first, _ := slices.BinarySearchFunc(s.claims, middle, func(c claim, t int64) int { return cmp.Compare(c.Asked, t) })
	n := d.room / 3
	first = max(0, min(first-n/2, len(s.claims)-n))
	for i := first; i < first+n; i++ {
		d.take(i)
		d.sample = [2]int64{s.claims[first].Asked, s.claims[i].Asked}
	}
}

// nearest takes the n claims nearest to any of the times.
func (s *story) nearest(d *choice, times []int64, n int) {
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	var rest []int
	distance := make([]int64, len(s.claims))
	for i := range s.claims {
		if !d.chosen[i] {
			rest, distance[i] = append(rest, i), s.claims[i].distance(times)
		}
	}
	slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(distance[a], distance[b]) })
	for _, i := range rest[:min(n, len(rest))] {
		d.take(i)
	}
}

// distance returns the time between a claim and the nearest of some sorted times.
func (c *claim) distance(times []int64) int64 {
	last := c.lastTime()
	i, _ := slices.BinarySearch(times, c.Asked)
	far := int64(math.MaxInt64)
	if i > 0 {
		far = c.Asked - times[i-1]
	}
	if i < len(times) {
		far = min(far, max(0, times[i]-last))
	}
	return far
}

// gaps finds the periods in which claims are omitted. It joins gaps whose distance is too
// small to see.
func (s *story) gaps(d *choice) {
	minDistance := s.Last / 5000
	for i := range s.claims {
		if d.chosen[i] {
			continue
		}
		from, to := s.claims[i].Asked, s.claims[i].lastTime()
		if n := len(d.gaps); n > 0 && from <= d.gaps[n-1][1]+minDistance {
			d.gaps[n-1][1] = max(d.gaps[n-1][1], to)
		} else {
			d.gaps = append(d.gaps, [2]int64{from, to})
		}
	}
}
