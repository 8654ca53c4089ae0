package check

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// The bounds of the search for an order.
const (
	maxPieceTime  = 10 * time.Second
	maxPieceSteps = 20_000 // a longer piece would need gigabytes
)

// linearizable checks with porcupine that some order of all events of a name on the
// server explains all answers.
//
// The steps of an order are the begins and ends of leases, and the refusals of tries. The
// order omits claims that failed or were given up, and the refusals that they may
// explain. Such a claim may have held the name for a while, but that only delays other
// claims.
func (w *world) linearizable(n *name) {
	s := w.newNameHistory(n)
	if clash := s.tighten(); clash != nil {
		w.addNotLinearizable(n, *clash)
		return
	}
	decided := true
	for piece := range s.pieces() {
		w.Numbers.PorcupinePieces++
		w.Numbers.PorcupineOperations += len(piece.steps)
		result := porcupine.Unknown
		if len(piece.steps) <= maxPieceSteps {
			result = porcupine.CheckOperationsTimeout(s.model(piece), piece.operations(), maxPieceTime)
		}
		switch result {
		case porcupine.Illegal:
			w.addIllegal(n, s, piece)
			return // the state after this piece is unknown
		case porcupine.Unknown:
			w.Numbers.PorcupineGaveUp++
			decided = false
		case porcupine.Ok:
		}
	}
	if decided {
		w.Numbers.PorcupineNames++
	}
}

// addIllegal reports a piece that no order explains. It names the first step that does
// not fit into the longest partial order.
func (w *world) addIllegal(n *name, s *nameHistory, p *piece) {
	_, info := porcupine.CheckOperationsVerbose(s.model(p), p.operations(), maxPieceTime)
	var longest []int
	for _, partial := range info.PartialLinearizations() {
		for _, order := range partial {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	placed := make([]bool, len(p.steps))
	for _, i := range longest {
		placed[i] = true
	}
	var first *step
	for i := range p.steps {
		if !placed[i] && (first == nil || p.steps[i].to < first.to) {
			first = &p.steps[i]
		}
	}
	c := first.claim
	about := []*history.Claim{c}
	for _, st := range p.steps {
		if st.claim != c && st.from <= first.to && st.to >= first.from && len(about) < 6 {
			about = append(about, st.claim)
		}
	}
	w.addNotLinearizable(n, Violation{From: first.from, To: first.to, Claims: ids(about...),
		Text: fmt.Sprintf("%s %s between %s and %s, and that does not fit.", upper{c}, first.kind, at(first.from), at(first.to))})
}

// addNotLinearizable reports a violation whose text is the reason.
func (w *world) addNotLinearizable(n *name, v Violation) {
	v.Rule, v.Name, v.To = Linearizable, n.Name, max(v.From, v.To)
	w.add(v, "No order of the grants and releases of %q explains the answers. %s", n.Name, v.Text)
}
