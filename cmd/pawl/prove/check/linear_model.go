package check

import (
	"cmp"
	"iter"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// step is one event of a name on the server, which happened between from and to.
type step struct {
	kind     stepKind
	claim    *history.Claim
	lease    int // its index in nameHistory.leases; unused for a refused try
	from, to int64
}

// stepKind is the kind of a step.
type stepKind int

const (
	leaseBegin stepKind = iota
	leaseEnd
	tryRefused
)

// String returns the predicate of a sentence about the step's claim.
func (k stepKind) String() string {
	return [...]string{"was granted", "ended", "was refused"}[k]
}

// lockState is the state of a name at one time, for porcupine.
type lockState struct {
	begun int   // the number of leases that have begun
	held  []int // the indexes of the held leases, ascending
}

// model returns the model of a correct lock: which steps are possible in which state.
func (s *nameHistory) model(p *piece) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return p.before },
		Step: func(state, input, _ any) (bool, any) {
			c, _ := state.(lockState)
			st, _ := input.(*step)
			return s.step(c, st)
		},
		Equal: func(a, b any) bool {
			x, _ := a.(lockState)
			y, _ := b.(lockState)
			return x.begun == y.begun && slices.Equal(x.held, y.held)
		},
		Hash: func(state any) uint64 {
			c, _ := state.(lockState)
			h := uint64(c.begun)
			for _, i := range c.held {
				h = h*1099511628211 + uint64(i) + 1
			}
			return h
		},
	}
}

func (s *nameHistory) step(c lockState, st *step) (possible bool, after lockState) {
	switch i, held := slices.BinarySearch(c.held, st.lease); st.kind {
	case leaseBegin:
		if st.lease != c.begun || !s.fits(c, st.claim) {
			return false, c
		}
		return true, lockState{c.begun + 1, slices.Insert(slices.Clone(c.held), i, st.lease)}
	case leaseEnd:
		if !held {
			return false, c
		}
		return true, lockState{c.begun, slices.Delete(slices.Clone(c.held), i, i+1)}
	case tryRefused:
		return !s.fits(c, st.claim), c
	}
	return false, c
}

// fits reports whether a claim can be granted beside the held leases.
func (s *nameHistory) fits(c lockState, claim *history.Claim) bool {
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

// piece is a part of the history of a name. All its steps happened before the steps of
// the next piece.
type piece struct {
	before lockState
	steps  []step
}

// minPieceSteps is the smallest number of steps in a piece. Many small pieces would be
// slow, because each call of porcupine has a fixed cost.
const minPieceSteps = 64

// pieces cuts the history where no step is in progress. All steps before the cut are then
// done, so the holders are known.
func (s *nameHistory) pieces() iter.Seq[*piece] {
	steps := s.steps()
	return func(yield func(*piece) bool) {
		var now lockState
		for begin := 0; begin < len(steps); {
			end, latest := begin, steps[begin].to
			for end < len(steps) && (steps[end].from <= latest || end-begin < minPieceSteps) {
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

// steps returns all steps, sorted by from.
func (s *nameHistory) steps() []step {
	steps := make([]step, 0, 2*len(s.leases)+len(s.refusals))
	for i, l := range s.leases {
		steps = append(steps,
			step{leaseBegin, l.claim, i, l.beginFrom, l.beginTo},
			step{leaseEnd, l.claim, i, l.endFrom, l.endTo})
	}
	steps = append(steps, s.refusals...)
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.from, b.from) })
	return steps
}

// after returns the state after all the steps.
func (c lockState) after(steps []step) lockState {
	held := slices.Clone(c.held)
	for _, st := range steps {
		if st.kind == leaseBegin {
			c.begun++
			held = append(held, st.lease)
		}
	}
	for _, st := range steps {
		if st.kind == leaseEnd {
			held = slices.DeleteFunc(held, func(i int) bool { return i == st.lease })
		}
	}
	slices.Sort(held)
	return lockState{c.begun, held}
}

func (p *piece) operations() []porcupine.Operation {
	all := make([]porcupine.Operation, len(p.steps))
	for i := range p.steps {
		all[i] = porcupine.Operation{Input: &p.steps[i], Call: p.steps[i].from, Return: p.steps[i].to}
	}
	return all
}
