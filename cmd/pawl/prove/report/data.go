package report

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/internal/visible"
)

// embedded is the data of the script, except the claims. All texts are visible.
type embedded struct {
	End        int64       `json:"end"`
	Workers    int         `json:"workers"`
	Names      []lockName  `json:"names"`
	Texts      []string    `json:"texts"`
	Phases     []span      `json:"phases"`
	Lives      []life      `json:"lives"`
	Kinds      []string    `json:"kinds"`
	Faults     [][5]int64  `json:"faults"` // kind, worker, from, to, hit
	Marks      [][4]int64  `json:"marks"`  // kind, time, claim, name
	Violations []violation `json:"violations"`
	Gaps       [][2]int64  `json:"gaps"`
	Rate       []int       `json:"rate"`   // grants of all claims, in equal parts of the run
	Shares     [][]int     `json:"shares"` // for each name, percent of each part for which it was held
}

type lockName struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Limit int    `json:"limit"`
	Base  string `json:"base"` // other fences are counted from it, because they may have 64 bits
}

type span struct {
	What string `json:"what"`
	From int64  `json:"from"`
	To   int64  `json:"to"`
}

type life struct {
	Worker int    `json:"worker"`
	Life   int    `json:"life"`
	PID    int    `json:"pid"`
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	End    string `json:"end"`
}

type violation struct {
	Rule   string  `json:"rule"`
	Name   int32   `json:"name"` // -1: none
	Text   string  `json:"text"`
	From   int64   `json:"from"`
	To     int64   `json:"to"`
	Claims []int64 `json:"claims"`
}

// mostAccused is the largest number of claims of one violation that the timeline marks.
const mostAccused = 100

// The numbers of equal parts of the run: for the chart of all grants, and for claims that
// are not drawn one by one.
const (
	rateParts  = 600
	shareParts = 1500
)

// data returns what the script reads, as JSON without a "<". The claims are columns of
// numbers.
func (s *story) data(d *choice, v *check.Verdict) []byte {
	e := embedded{
		End: s.end, Workers: s.workers(), Rate: s.rate(), Gaps: append([][2]int64{}, d.gaps...),
		// A nil slice would be null.
		Names: []lockName{}, Texts: []string{}, Phases: []span{}, Lives: []life{}, Kinds: []string{}, Faults: [][5]int64{},
		Marks: [][4]int64{}, Violations: []violation{}, Shares: [][]int{},
	}
	if len(d.gaps) > 0 {
		e.Shares = s.shares()
	}
	bases := s.bases()
	for i, n := range s.names.list {
		l := lockName{Name: visible.Text(n), Base: strconv.FormatUint(bases[i], 10), Limit: 1}
		for _, known := range s.run.Names {
			if known.Name == n {
				l.Kind, l.Limit = visible.Text(known.Kind), known.Limit
			}
		}
		e.Names = append(e.Names, l)
	}
	for _, t := range s.texts.list {
		e.Texts = append(e.Texts, visible.Text(t))
	}
	for _, p := range s.phases {
		e.Phases = append(e.Phases, span{visible.Text(p.Phase), p.From, p.To})
	}
	for _, l := range s.lives {
		e.Lives = append(e.Lives, life{l.Worker, l.Life, l.PID, l.From, l.To, visible.Text(l.End)})
	}
	for _, f := range s.faults {
		i := slices.Index(e.Kinds, visible.Text(f.Kind))
		if i < 0 {
			i = len(e.Kinds)
			e.Kinds = append(e.Kinds, visible.Text(f.Kind))
		}
		e.Faults = append(e.Faults, [5]int64{int64(i), int64(f.Worker), f.From, f.To, int64(f.Hit)})
	}
	for _, m := range d.marks {
		e.Marks = append(e.Marks, [4]int64{int64(m.kind), m.at, m.id, int64(m.name)})
	}
	for _, x := range v.Violations {
		name, ok := s.names.at[x.Name]
		if !ok {
			name = -1
		}
		e.Violations = append(e.Violations, violation{visible.Text(x.Rule), name, visible.Text(x.Text), x.From, x.To, append([]int64{}, x.Claims[:min(len(x.Claims), mostAccused)]...)})
	}
	head, err := json.Marshal(e)
	if err != nil {
		panic(err) // it has only numbers and texts
	}
	return append(s.columns(append(head[:len(head)-1], `,"claims":`...), d, bases), '}')
}

func (s *story) workers() int {
	n := s.run.Workers
	for i := range s.claims {
		n = max(n, int(s.claims[i].worker)+1)
	}
	for _, l := range s.lives {
		n = max(n, l.Worker+1)
	}
	return min(n, mostWorkers)
}

// mostWorkers keeps a broken history from a page with millions of rows.
const mostWorkers = 10_000

// bases returns the smallest fence of each name.
func (s *story) bases() []uint64 {
	bases := make([]uint64, len(s.names.list))
	for i := range s.claims {
		if c := &s.claims[i]; c.fence != 0 && (bases[c.name] == 0 || c.fence < bases[c.name]) {
			bases[c.name] = c.fence
		}
	}
	return bases
}

func (s *story) rate() []int {
	rate := make([]int, rateParts)
	for i := range s.claims {
		if c := &s.claims[i]; c.got > 0 && s.end > 0 {
			rate[min(int64(rateParts-1), c.got/(s.end/rateParts+1))]++
		}
	}
	return rate
}

// shares returns, for each name, for how many percent of each part of the run one of its
// leases was held. Leases at the same time count more than once, up to 100.
func (s *story) shares() [][]int {
	part := s.end/shareParts + 1
	held := make([][]int64, len(s.names.list))
	for i := range held {
		held[i] = make([]int64, shareParts)
	}
	for i := range s.claims {
		c := &s.claims[i]
		until := max(c.got, c.believed)
		if c.end == endReleased {
			until = c.released
		}
		for t := c.got; t > 0 && t < until; {
			k := t / part
			next := min(until, (k+1)*part)
			held[c.name][k] += next - t
			t = next
		}
	}
	shares := make([][]int, len(held))
	for i := range held {
		shares[i] = make([]int, shareParts)
		for k, ns := range held[i] {
			shares[i][k] = int(min(100, (ns*100+part-1)/part))
		}
	}
	return shares
}

// The names of the kinds of faults, for the legend, in the order of history.
var faultKinds = []string{
	history.Stop, history.Kill, history.Crash, history.Overstay,
	history.Cut, history.Delay, history.Reorder, history.Swallow, history.Silence,
	history.ServerStop, history.ServerKill, history.ServerRestart, history.FailOver,
}
