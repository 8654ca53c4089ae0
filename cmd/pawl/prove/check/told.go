package check

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// The limits for a holder to learn that its lease is over.
const (
	lostWithin = int64(time.Second)     // to see the loss, after another holder has got the name
	toldWithin = int64(2 * time.Second) // for the lock to notify it, after it saw that the lease was lost
)

// lostNotTold finds holders that worked on though another had got the name, and holders
// that the lock did not wake up. A holder that is stopped sees nothing; it must see the
// loss when it goes on.
func (w *world) lostNotTold(n *name) {
	next := w.newSuccessors(n)
	for _, a := range n.granted {
		w.notWoken(n, a)
		b := next.of(n, a)
		if b == nil {
			continue
		}
		superseded := max(a.Got, b.Got)
		if w.forgot(a, superseded) {
			continue
		}
		if running := max(superseded, w.stops.lastTouch(a.Worker, a.Lost)); a.Lost > running {
			w.numbers.WorstTold = max(w.numbers.WorstTold, time.Duration(a.Lost-running))
		}
		latest := w.stops.after(a.Worker, superseded, superseded+lostWithin, lostWithin)
		if w.stopsLooking(a) <= latest || w.full(LostNotTold, n.Name.Name) {
			continue
		}
		until := "and it never saw that its own lease was over"
		if a.Lost != 0 {
			until = "and it saw only at " + at(a.Lost) + " that its own lease was over"
		}
		w.add(Violation{
			Rule: LostNotTold, Name: n.Name.Name, From: superseded, To: w.stopsLooking(a), Claims: ids(a, b),
			Text: fmt.Sprintf("%s held %q from %s on. %s got the name at %s. The first holder went on for %s, %s.",
				upper(a), n.Name.Name, at(a.Got), upper(b), at(b.Got), length(w.stopsLooking(a)-superseded), until),
		})
	}
}

// stopsLooking returns the time at which a holder saw that its lease was lost, or at
// which it stopped looking.
func (w *world) stopsLooking(c *history.Claim) int64 {
	first := w.last
	for _, t := range []int64{c.Lost, c.Released, c.Died} {
		if t != 0 {
			first = min(first, t)
		}
	}
	if c.Died != 0 && c.Lost == 0 && c.Released == 0 {
		first = max(c.Got, c.Believed) // it died soon after that
	}
	return first
}

// notWoken reports a holder that saw the loss of its lease only because it looked. Only
// Pawl promises to wake its holders up.
func (w *world) notWoken(n *name, c *history.Claim) {
	if c.Lost == 0 || w.run.Lock != "pawl" {
		return
	}
	latest := w.stops.after(c.Worker, c.Lost, c.Lost+toldWithin, toldWithin)
	heard := w.last
	for _, t := range []int64{c.Told, c.Released, c.Died} {
		if t != 0 {
			heard = min(heard, t)
		}
	}
	if heard <= latest || w.full(LostNotTold, n.Name.Name) {
		return
	}
	w.add(Violation{
		Rule: LostNotTold, Name: n.Name.Name, From: c.Lost, To: heard, Claims: ids(c),
		Text: fmt.Sprintf("%s had lost %q at %s, and the lock had not woken it up %s later.",
			upper(c), n.Name.Name, at(c.Lost), length(heard-c.Lost)),
	})
}

// successors finds, for a lease, the first grant that ended it: a grant that excludes the
// lease, and that was certainly later.
type successors struct {
	w       *world
	ordered []*history.Claim // by fence, or by Asked if there are no fences
	classes []class
}

// class has the claims of a name with one mode and weight.
type class struct {
	example *history.Claim
	first   []*history.Claim // first[i] is the first grant of the class among ordered[i:]
}

func (w *world) newSuccessors(n *name) *successors {
	s := &successors{w: w, ordered: slices.Clone(n.granted)}
	slices.SortStableFunc(s.ordered, func(a, b *history.Claim) int { return cmp.Compare(s.key(a), s.key(b)) })
	type what struct {
		mode   string
		weight int
	}
	seen := map[what]int{}
	for _, c := range s.ordered {
		k := what{c.Mode, c.Weight}
		if _, ok := seen[k]; !ok {
			seen[k] = len(s.classes)
			s.classes = append(s.classes, class{c, make([]*history.Claim, len(s.ordered)+1)})
		}
	}
	for i, c := range slices.Backward(s.ordered) {
		for k := range s.classes {
			s.classes[k].first[i] = s.classes[k].first[i+1]
		}
		first := &s.classes[seen[what{c.Mode, c.Weight}]].first[i]
		if *first == nil || c.Got < (*first).Got {
			*first = c
		}
	}
	return s
}

func (s *successors) key(c *history.Claim) uint64 {
	if s.w.run.Fenced {
		return c.Fence
	}
	return uint64(c.Asked)
}

// of returns the first grant that ended the lease a, or nil.
func (s *successors) of(n *name, a *history.Claim) *history.Claim {
	key := a.Fence
	if !s.w.run.Fenced {
		key = uint64(a.Got)
	}
	i := sort.Search(len(s.ordered), func(i int) bool { return s.key(s.ordered[i]) > key })
	var first *history.Claim
	for _, k := range s.classes {
		if c := k.first[i]; c != nil && n.excludes(a, k.example) && (first == nil || c.Got < first.Got) {
			first = c
		}
	}
	return first
}
