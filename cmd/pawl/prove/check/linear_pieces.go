package check

import (
	"cmp"
	"iter"
	"slices"

	"github.com/anishathalye/porcupine"
)

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

// steps are in the order of the time from which on they may have happened.
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

// after is the condition after all the steps.
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
