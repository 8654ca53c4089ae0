package check

import (
	"cmp"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// world is a history that was read, in the form that the rules need.
type world struct {
	run     history.Run
	phases  []history.Phase
	claims  []*history.Claim // in the order of the file
	byID    map[int64]*history.Claim
	names   []*name // in the order of Run.Names, then as they come
	writes  []*history.Write
	workers []history.Worker
	lefts   []history.Left
	end     history.End
	last    int64 // the last time that the history has

	faults    timeline // the faults that keep claims waiting, and the times when the server was slow
	untouched int64    // the time when the first fault of any kind was ordered
	down      int64    // how long faults kept the server down
	stops     timeline // the faults that keep a worker from running
	network   timeline
	forgotten timeline // the faults that let the server lose writes, if Run.Forgets
	hit       map[string]int

	findings
	numbers Numbers
}

// name is one name of the history, with its claims.
type name struct {
	history.Name
	claims  []*history.Claim // in the order of Asked
	granted []*history.Claim // in the order of Got
}

// read collects the lines.
func read(lines iter.Seq2[history.Line, error]) (*world, error) {
	w := &world{byID: map[int64]*history.Claim{}, hit: map[string]int{}}
	known := map[string]*name{}
	byName := func(s string) *name {
		n := known[s]
		if n == nil {
			n = &name{Name: history.Name{Name: s, Kind: history.Mutex, Limit: 1}}
			known[s], w.names = n, append(w.names, n)
		}
		return n
	}
	shared := words{}
	var faults []history.Fault
	for l, err := range lines {
		switch {
		case err != nil:
			return nil, err
		case l.Run != nil:
			w.run = *l.Run
			for _, n := range l.Run.Names {
				byName(n.Name).Name = n
			}
		case l.Phase != nil:
			w.phases = append(w.phases, *l.Phase)
		case l.Claim != nil:
			c := l.Claim
			shared.replace(&c.Name, &c.Mode, &c.How, &c.Answer, &c.Error, &c.Why, &c.Release)
			w.claims = append(w.claims, c)
			n := byName(c.Name)
			n.claims = append(n.claims, c)
			w.last = max(w.last, lastTime(c))
		case l.Write != nil:
			shared.replace(&l.Write.Name)
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
	for _, c := range w.claims {
		w.byID[c.ID] = c
	}
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

// reachedAgain and two TTLs are the time that clients may need to reach a server that was
// away, and to have their places in its queues again. The clients of a cluster have to
// find its nodes.
const reachedAgain = int64(3 * time.Second)

// crashWithin is the longest time between the recorded end of a Crash and the end of the
// process.
const crashWithin = int64(time.Second)

// sortFaults keeps the faults that did something.
func (w *world) sortFaults(faults []history.Fault) {
	var all, stops, network, forgotten, pauses []history.Fault
	w.untouched = math.MaxInt64
	for _, f := range faults {
		if f.Kind == history.Pause {
			pauses = append(pauses, f)
			continue
		}
		w.untouched = min(w.untouched, f.From)
		if f.Hit <= 0 { // or it happened after the controller had stopped waiting for it
			continue
		}
		w.hit[f.Kind]++
		switch f.Kind {
		case history.ServerStop, history.ServerKill, history.ServerRestart: // one at a time
			w.down += f.To - f.From
		case history.Overstay:
			continue // it keeps no claim waiting
		case history.Crash:
			// It begins when the controller orders it, for the next section.
			f.From, f.To = f.To-crashWithin, f.To+crashWithin
		}
		if reached := f; f.Worker == server {
			reached.To += 2*w.run.TTL + reachedAgain
			all = append(all, reached)
		} else {
			all = append(all, f)
		}
		switch f.Kind {
		case history.Stop:
			stops = append(stops, f)
		case history.Cut, history.Delay, history.Reorder, history.Swallow, history.Silence:
			network = append(network, f)
		case history.ServerKill, history.ServerRestart, history.FailOver:
			if w.run.Forgets {
				forgotten = append(forgotten, f)
			}
		}
	}
	w.countPauses(pauses, newTimeline(stops))
	all = append(all, pauses...)
	w.faults, w.stops, w.network = newTimeline(all), newTimeline(append(stops, w.ofAll(pauses)...)), newTimeline(network)
	w.forgotten = newTimeline(forgotten)
	w.faults = newTimeline(append(all, w.slow()...))
}

// phase is the time of a phase; ok is false if there was none.
func (w *world) phase(phase string) (from, to int64, ok bool) {
	for _, p := range w.phases {
		if p.Phase == phase {
			return p.From, p.To, true
		}
	}
	return 0, 0, false
}

// words keeps one string of those that are equal. A history of a million claims has few
// different ones.
type words map[string]string

func (w words) replace(all ...*string) {
	for _, s := range all {
		known, ok := w[*s]
		if !ok {
			w[*s], known = *s, *s
		}
		*s = known
	}
}
