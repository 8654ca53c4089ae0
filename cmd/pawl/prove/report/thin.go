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
}

// choose chooses all claims, or most of them if they are more.
func (s *story) choose(v *check.Verdict, most int) *choice {
	d, p := &choice{}, &picker{chosen: make([]bool, len(s.claims)), left: most}
	if len(s.claims) <= most {
		for i := range s.claims {
			p.take(i)
		}
	} else {
		d.sample = s.pick(p, v)
		d.gaps = s.gaps(p.chosen)
	}
	for i, chosen := range p.chosen {
		if chosen {
			d.claims = append(d.claims, i)
		}
	}
	return d
}

// pick takes the claims that a reader looks for: claims that violate a rule, ended oddly,
// are in a short time of which it takes all, are near violations, or are near the begins
// and the ends of faults. It returns the short time.
func (s *story) pick(p *picker, v *check.Verdict) (sample [2]int64) {
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
	var odd []int
	for i := range s.claims {
		switch c := &s.claims[i]; {
		case accused[c.ID]:
			p.take(i)
		case c.odd():
			odd = append(odd, i)
		}
	}
	for _, i := range thinned(odd, p.left*2/3) {
		p.take(i)
	}
	sample = s.sample(p)
	p.nearest(s, places, p.left/2)
	p.nearest(s, edges, p.left)
	return sample
}

// odd returns the number of odd claims that are drawn, and of all.
func (s *story) odd(d *choice) (drawn, all int) {
	for _, i := range d.claims {
		if s.claims[i].odd() {
			drawn++
		}
	}
	return drawn, s.count((*claim).odd)
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

// A picker chooses claims, as long as there is room.
type picker struct {
	chosen []bool
	left   int
}

func (p *picker) take(i int) {
	if !p.chosen[i] && p.left > 0 {
		p.chosen[i] = true
		p.left--
	}
}

// sample takes all claims of a time in the middle of the run: a third of the room.
func (s *story) sample(p *picker) [2]int64 {
	middle := s.Last / 2
	first, _ := slices.BinarySearchFunc(s.claims, middle, func(c claim, t int64) int { return cmp.Compare(c.Asked, t) })
	n := p.left / 3
	first = max(0, min(first-n/2, len(s.claims)-n))
	if n == 0 {
		return [2]int64{}
	}
	for i := first; i < first+n; i++ {
		p.take(i)
	}
	return [2]int64{s.claims[first].Asked, s.claims[first+n-1].Asked}
}

// nearest takes up to n claims, those first that are nearest to one of the times.
func (p *picker) nearest(s *story, times []int64, n int) {
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	var rest []int
	far := make([]int64, len(s.claims))
	for i := range s.claims {
		if !p.chosen[i] {
			rest, far[i] = append(rest, i), s.claims[i].far(times)
		}
	}
	slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(far[a], far[b]) })
	for _, i := range rest[:min(n, len(rest))] {
		p.take(i)
	}
}

// far returns the time between a claim and the nearest of some sorted times.
func (c *claim) far(times []int64) int64 {
	over := c.over()
	i, _ := slices.BinarySearch(times, c.Asked)
	far := int64(math.MaxInt64)
	if i > 0 {
		far = c.Asked - times[i-1]
	}
	if i < len(times) {
		far = min(far, max(0, times[i]-over))
	}
	return far
}

// gaps returns the times in which claims are left out. It joins what no eye could tell
// apart.
func (s *story) gaps(chosen []bool) [][2]int64 {
	var gaps [][2]int64
	apart := s.Last / 5000
	for i := range s.claims {
		if chosen[i] {
			continue
		}
		from, to := s.claims[i].Asked, s.claims[i].over()
		if n := len(gaps); n > 0 && from <= gaps[n-1][1]+apart {
			gaps[n-1][1] = max(gaps[n-1][1], to)
		} else {
			gaps = append(gaps, [2]int64{from, to})
		}
	}
	return gaps
}
