package check

import (
	"cmp"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// world is a history in the form that the rules need.
type world struct {
	*history.History
	byID   map[int64]*history.Claim
	names  []*name // in the order of Run.Names, then of the claims
	byName map[string]*name

	faults     timeline // the faults that delay claims, and the times when the server was slow
	firstFault int64    // the time when the first fault was ordered
	downtime   int64    // how long faults kept the server down
	stops      timeline // the times when a worker did not run
	network    timeline
	dataLosses timeline // the faults in which the server may lose writes, if Run.Forgets

	Verdict                           // without Violations
	found   map[[2]string][]Violation // the first violations, by rule and name
}

// name is one name of the history, with its claims.
type name struct {
	Name    string
	Limit   int
	claims  []*history.Claim // in the order of Asked
	granted []*history.Claim // in the order of Got
}

func newWorld(h *history.History) *world {
	w := &world{History: h, byID: map[int64]*history.Claim{}, byName: map[string]*name{}, found: map[[2]string][]Violation{}}
	w.Count, w.Numbers.FaultsByKind = map[string]int{}, map[string]int{}
	named := func(s string) *name {
		n := w.byName[s]
		if n == nil {
			n = &name{Name: s, Limit: 1}
			w.byName[s], w.names = n, append(w.names, n)
		}
		return n
	}
	for _, n := range h.Run.Names {
		named(n.Name).Limit = n.Limit
	}
	for _, c := range h.Claims {
		n := named(c.Name)
		n.claims, w.byID[c.ID] = append(n.claims, c), c
	}
	w.sortFaults()
	for _, n := range w.names {
		slices.SortStableFunc(n.claims, func(a, b *history.Claim) int { return cmp.Compare(a.Asked, b.Asked) })
		for _, c := range n.claims {
			if c.Answer == history.Granted && c.Got != 0 {
				n.granted = append(n.granted, c)
			}
		}
		slices.SortStableFunc(n.granted, func(a, b *history.Claim) int { return cmp.Compare(a.Got, b.Got) })
	}
	return w
}
