package check

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// world is a history that was read, in the form that the rules need.
type world struct {
	run     history.Run
	phases  []history.Phase
	claims  []*history.Claim // in the order of the file
	byID    map[int64]*history.Claim
	names   []*name // in the order of Run.Names, then as they come
	byName  map[string]*name
	writes  []*history.Write
	workers []history.Worker
	lefts   []history.Left
	end     history.End
	last    int64 // the last time that the history has

	faults     timeline // the faults that keep claims waiting, and the times when the server was slow
	firstFault int64    // the time when the first fault of any kind was ordered
	down       int64    // how long faults kept the server down
	stops      timeline // the faults that keep a worker from running
	network    timeline
	forgotten  timeline // the faults that let the server lose writes, if Run.Forgets

	Verdict                           // except its violations
	found   map[[2]string][]Violation // by rule and name; the first of each
}

// name is one name of the history, with its claims.
type name struct {
	Name    string
	Limit   int
	claims  []*history.Claim // in the order of Asked
	granted []*history.Claim // in the order of Got
}

// read collects the lines.
func read(lines iter.Seq2[history.Line, error]) (*world, error) {
	w := &world{byID: map[int64]*history.Claim{}, byName: map[string]*name{}, found: map[[2]string][]Violation{}}
	w.Count, w.Numbers.FaultsByKind = map[string]int{}, map[string]int{}
	named := func(s string) *name {
		n := w.byName[s]
		if n == nil {
			n = &name{Name: s, Limit: 1}
			w.byName[s], w.names = n, append(w.names, n)
		}
		return n
	}
	var faults []history.Fault
	for l, err := range lines {
		switch {
		case err != nil:
			return nil, err
		case l.Run != nil:
			w.run = *l.Run
			for _, n := range l.Run.Names {
				named(n.Name).Limit = n.Limit
			}
		case l.Phase != nil:
			w.phases = append(w.phases, *l.Phase)
		case l.Claim != nil:
			c, n := l.Claim, named(l.Claim.Name)
			w.claims, n.claims, w.byID[c.ID] = append(w.claims, c), append(n.claims, c), c
			w.last = max(w.last, lastTime(c))
		case l.Write != nil:
			w.writes = append(w.writes, l.Write)
			w.last = max(w.last, l.Write.At)
		case l.Fault != nil:
			faults = append(faults, *l.Fault)
		case l.Worker != nil:
			w.workers = append(w.workers, *l.Worker)
		case l.Left != nil:
			w.lefts = append(w.lefts, *l.Left)
			w.last = max(w.last, l.Left.At)
		case l.End != nil:
			w.end = *l.End
			w.last = max(w.last, l.End.At)
		}
	}
	if w.run.Format == 0 {
		return nil, errors.New("the history does not say what was run")
	}
	w.sortFaults(faults)
	for _, n := range w.names {
		slices.SortStableFunc(n.claims, func(a, b *history.Claim) int { return cmp.Compare(a.Asked, b.Asked) })
		for _, c := range n.claims {
			if c.Answer == history.Granted && c.Got != 0 {
				n.granted = append(n.granted, c)
			}
		}
		slices.SortStableFunc(n.granted, func(a, b *history.Claim) int { return cmp.Compare(a.Got, b.Got) })
	}
	return w, nil
}

// phase returns the time of a phase; ok is false if the run did not reach it.
func (w *world) phase(phase string) (from, to int64, ok bool) {
	for _, p := range w.phases {
		if p.Phase == phase {
			return p.From, p.To, true
		}
	}
	return 0, 0, false
}
