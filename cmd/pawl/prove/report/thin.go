package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
)

// maxDrawn is the largest number of claims on the timeline. A browser draws that many
// quickly, and the file has less than 10 MB.
const maxDrawn = 60_000

// A choice is the part of a story that the timeline draws.
type choice struct {
	claims []int      // indexes of story.claims, ascending
	sample [2]int64   // the time in which all claims are drawn
	gaps   [][2]int64 // the times in which some are not

	chosen []bool // for each claim of the story
	room   int    // how many more claims may be chosen
}

func (d *choice) take(i int) {
	if !d.chosen[i] && d.room > 0 {
		d.chosen[i] = true
		d.room--
	}
}

// chooseClaims chooses the claims that the timeline draws, at most `most`.
func (s *story) chooseClaims(v *check.Verdict, most int) *choice {
	d := &choice{chosen: make([]bool, len(s.claims)), room: most}
	if len(s.claims) <= most {
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

// pick takes the claims that a reader looks for: claims that violate a rule or ended
// oddly, all claims of a short time, and claims near a violation, or near the begin or
// the end of a fault.
func (s *story) pick(d *choice, v *check.Verdict) {
	accused := map[int64]bool{}
	var places, edges []int64
	for _, x := range v.Violations {
		places = append(places, x.From, x.To)
		for _, id := range x.Claims {
			accused[id] = true
		}
	}
	for _, f := range s.faults {
		edges = append(edges, f.From, f.To)
	}
	var abnormal []int
	for i := range s.claims {
		switch c := &s.claims[i]; {
		case accused[c.ID]:
			d.take(i)
		case c.isAbnormal():
			abnormal = append(abnormal, i)
		}
	}
	for _, i := range thinned(abnormal, d.room*2/3) {
		d.take(i)
	}
	s.sample(d)
	s.nearest(d, places, d.room/2)
	s.nearest(d, edges, d.room)
	s.gaps(d)
}

// countAbnormal returns the number of abnormal claims that are drawn, and of all.
func (s *story) countAbnormal(d *choice) (drawn, all int) {
	for _, i := range d.claims {
		if s.claims[i].isAbnormal() {
			drawn++
		}
	}
	return drawn, s.count((*claim).isAbnormal)
}

// thinned returns at most n of a list, evenly.
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

// sample takes all claims of a short time in the middle of the run, for a third of the
// room.
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

// nearest takes the n claims that are nearest to one of the times.
func (s *story) nearest(d *choice, times []int64, n int) {
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	var rest []int
	far := make([]int64, len(s.claims))
	for i := range s.claims {
		if !d.chosen[i] {
			rest, far[i] = append(rest, i), s.claims[i].distance(times)
		}
	}
	slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(far[a], far[b]) })
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

// gaps finds the times in which claims are left out. It joins gaps that a reader could
// not distinguish.
func (s *story) gaps(d *choice) {
	apart := s.Last / 5000
	for i := range s.claims {
		if d.chosen[i] {
			continue
		}
		from, to := s.claims[i].Asked, s.claims[i].lastTime()
		if n := len(d.gaps); n > 0 && from <= d.gaps[n-1][1]+apart {
			d.gaps[n-1][1] = max(d.gaps[n-1][1], to)
		} else {
			d.gaps = append(d.gaps, [2]int64{from, to})
		}
	}
}
