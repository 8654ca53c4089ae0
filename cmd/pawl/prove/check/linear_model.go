package check

import (
	"cmp"
	"iter"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// step is one thing that happened to a name on the server, between from and to.
type step struct {
	kind     kind
	claim    *history.Claim
	lease    int // index in the story; none if refused
	from, to int64
}

// kind is the kind of a step.
type kind int

const (
	begins kind = iota
	ends
	refused
)

// String returns the step as the end of a sentence about its claim.
func (k kind) String() string {
	return [...]string{"was granted", "ended", "was refused"}[k]
}

// condition is the state of a name at one time.
type condition struct {
	begun int   // the number of leases that have begun
	held  []int // the indexes of the held leases, ascending
}

// model returns the lock as it should be: a step is possible, or it is not.
func (s *story) model(p *piece) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return p.before },
		Step: func(state, input, _ any) (bool, any) {
			c, _ := state.(condition)
			st, _ := input.(*step)
			return s.step(c, st)
		},
		Equal: func(a, b any) bool {
			x, _ := a.(condition)
			y, _ := b.(condition)
			return x.begun == y.begun && slices.Equal(x.held, y.held)
		},
		Hash: func(state any) uint64 {
			c, _ := state.(condition)
			h := uint64(c.begun)
			for _, i := range c.held {
				h = h*1099511628211 + uint64(i) + 1
			}
			return h
		},
	}
}

func (s *story) step(c condition, st *step) (possible bool, after condition) {
	switch i, held := slices.BinarySearch(c.held, st.lease); st.kind {
	case begins:
		if st.lease != c.begun || !s.fits(c, st.claim) {
			return false, c
		}
		return true, condition{c.begun + 1, slices.Insert(slices.Clone(c.held), i, st.lease)}
	case ends:
		if !held {
			return false, c
		}
		return true, condition{c.begun, slices.Delete(slices.Clone(c.held), i, i+1)}
	case refused:
		return !s.fits(c, st.claim), c
	}
	return false, c
}

// fits reports whether a claim can be held beside the leases that are held.
func (s *story) fits(c condition, claim *history.Claim) bool {
	weight := claim.Weight
	for _, i := range c.held {
		h := s.leases[i].claim
		if s.name.excludes(h, claim) {
			return false
		}
		if h.Mode == history.Permits {
			weight += h.Weight
		}
	}
	return claim.Mode != history.Permits || weight <= s.name.Limit
}

// piece is a part of the history of a name: all its steps happened before the steps of
// the next piece.
type piece struct {
	before condition
	steps  []step
}

// pieceLeast is the smallest number of operations in a piece. Each piece has costs of its
// own, so small ones would be slow.
const pieceLeast = 64

// pieces cuts the history wherever no step is in progress. Then all steps before the cut
// were done, so that the holders are known.
func (s *story) pieces() iter.Seq[*piece] {
	steps := s.steps()
	return func(yield func(*piece) bool) {
		var now condition
		for begin := 0; begin < len(steps); {
			end, latest := begin, steps[begin].to
			for end < len(steps) && (steps[end].from <= latest || end-begin < pieceLeast) {
				latest = max(latest, steps[end].to)
				end++
			}
			if !yield(&piece{now, steps[begin:end]}) {
				return
			}
			now = now.after(steps[begin:end])
			begin = end
		}
	}
}

// steps returns all steps, in the order of the first times at which they may have
// happened.
func (s *story) steps() []step {
	steps := make([]step, 0, 2*len(s.leases)+len(s.tries))
	for i, l := range s.leases {
		steps = append(steps,
			step{begins, l.claim, i, l.beginFrom, l.beginTo},
			step{ends, l.claim, i, l.endFrom, l.endTo})
	}
	steps = append(steps, s.tries...)
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.from, b.from) })
	return steps
}

// after returns the condition after all the steps.
func (c condition) after(steps []step) condition {
	held := slices.Clone(c.held)
	for _, st := range steps {
		if st.kind == begins {
			c.begun++
			held = append(held, st.lease)
		}
	}
	for _, st := range steps {
		if st.kind == ends {
			held = slices.DeleteFunc(held, func(i int) bool { return i == st.lease })
		}
	}
	slices.Sort(held)
	return condition{c.begun, held}
}

func (p *piece) operations() []porcupine.Operation {
	all := make([]porcupine.Operation, len(p.steps))
	for i := range p.steps {
		all[i] = porcupine.Operation{Input: &p.steps[i], Call: p.steps[i].from, Return: p.steps[i].to}
	}
	return all
}
