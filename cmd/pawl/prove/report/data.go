package report

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/internal/visible"
)

// embedded is the data of the script. All texts are visible.
type embedded struct {
	End        int64            `json:"end"`
	Workers    int              `json:"workers"`
	Names      []lockName       `json:"names"`
	Texts      []string         `json:"texts"` // all other texts of claims
	Phases     []history.Phase  `json:"phases"`
	Lives      []history.Worker `json:"lives"`
	Faults     []history.Fault  `json:"faults"`
	Marks      [][4]int64       `json:"marks"` // kind, time, claim, name
	Violations []violation      `json:"violations"`
	Gaps       [][2]int64       `json:"gaps"`
	Rate       []int            `json:"rate"`   // grants of all claims, in equal parts of the run
	Shares     [][]int          `json:"shares"` // for each name, percent of each part for which it was held
	Claims     map[string]any   `json:"claims"` // a column of numbers for each field
}

type lockName struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Limit int    `json:"limit"`
	Base  string `json:"base"` // other fences are counted from it, because they may have 64 bits
}

type violation struct {
	Rule   string  `json:"rule"`
	Name   int     `json:"name"` // -1: none
	Text   string  `json:"text"`
	From   int64   `json:"from"`
	To     int64   `json:"to"`
	Claims []int64 `json:"claims"`
}

const (
	mostAccused = 100    // claims of one violation that the timeline marks
	mostWorkers = 10_000 // keeps a broken history from a page with millions of rows
	longText    = 400    // bytes; the report cuts off the rest of a claim's text
	rateParts   = 600    // equal parts of the run, for the chart of all grants
	shareParts  = 1500   // the same for claims that are not drawn one by one
)

// data returns what the script reads, as JSON without a "<".
func (s *story) data(d *choice, v *check.Verdict) []byte {
	e := embedded{
		End: s.Last, Workers: s.workers(), Rate: s.rate(), Gaps: append([][2]int64{}, d.gaps...),
		// A nil slice would be null.
		Names: []lockName{}, Phases: []history.Phase{}, Lives: []history.Worker{}, Faults: []history.Fault{},
		Marks: [][4]int64{}, Violations: []violation{}, Shares: [][]int{},
	}
	if len(d.gaps) > 0 {
		e.Shares = s.shares()
	}
	bases := s.bases()
	e.Claims, e.Texts = s.columns(d, bases)
	for i, text := range e.Texts {
		e.Texts[i] = visible.Text(text)
	}
	for _, n := range s.names.list {
		l := lockName{Name: visible.Text(n), Base: strconv.FormatUint(bases[n], 10), Limit: 1}
		for _, known := range s.Run.Names {
			if known.Name == n {
				l.Kind, l.Limit = visible.Text(known.Kind), known.Limit
			}
		}
		e.Names = append(e.Names, l)
	}
	for _, p := range s.Phases {
		p.Phase = visible.Text(p.Phase)
		e.Phases = append(e.Phases, p)
	}
	for _, l := range s.Workers {
		l.End = visible.Text(l.End)
		e.Lives = append(e.Lives, l)
	}
	for _, f := range s.faults {
		f.Kind = visible.Text(f.Kind)
		e.Faults = append(e.Faults, f)
	}
	for _, m := range d.marks {
		e.Marks = append(e.Marks, [4]int64{int64(m.kind), m.at, m.id, int64(m.name)})
	}
	for _, x := range v.Violations {
		name, ok := s.names.at[x.Name]
		if !ok {
			name = -1
		}
		accused := append([]int64{}, x.Claims[:min(len(x.Claims), mostAccused)]...)
		e.Violations = append(e.Violations, violation{visible.Text(x.Rule), name, visible.Text(x.Text), x.From, x.To, accused})
	}
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // it has only numbers and texts
	}
	return b
}

func (s *story) workers() int {
	n := s.Run.Workers
	for _, c := range s.claims {
		n = max(n, c.Worker+1)
	}
	for _, l := range s.Workers {
		n = max(n, l.Worker+1)
	}
	return min(n, mostWorkers)
}

// bases returns the smallest fence of each name.
func (s *story) bases() map[string]uint64 {
	bases := map[string]uint64{}
	for _, c := range s.claims {
		if base := bases[c.Name]; c.Fence != 0 && (base == 0 || c.Fence < base) {
			bases[c.Name] = c.Fence
		}
	}
	return bases
}

func (s *story) rate() []int {
	rate := make([]int, rateParts)
	for _, c := range s.claims {
		if c.Got > 0 && s.Last > 0 {
			rate[min(int64(rateParts-1), c.Got/(s.Last/rateParts+1))]++
		}
	}
	return rate
}

// shares returns, for each name, for how many percent of each part of the run one of its
// leases was held. Leases at the same time count more than once, up to 100.
func (s *story) shares() [][]int {
	part := s.Last/shareParts + 1
	held := make([][shareParts]int64, len(s.names.list))
	for _, c := range s.claims {
		until := max(c.Got, c.Believed)
		if c.end == endReleased {
			until = c.Released
		}
		for t := c.Got; t > 0 && t < until; {
			k := t / part
			next := min(until, (k+1)*part)
			held[s.names.add(c.Name)][k] += next - t
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

// columns returns the chosen claims as a column of numbers for each field, and the texts
// that some of these numbers stand for.
func (s *story) columns(d *choice, bases map[string]uint64) (columns map[string]any, texts []string) {
	columns = map[string]any{"n": len(d.claims)}
	field := func(key string, of func(c *claim) int64) {
		column := make([]int64, len(d.claims))
		for i, at := range d.claims {
			column[i] = of(&s.claims[at])
		}
		columns[key] = packed(column)
	}
	number := func(key string, of func(c *claim) int) { field(key, func(c *claim) int64 { return int64(of(c)) }) }
	// A time is 0 for never, or the time after Asked, plus 1. A time before Asked is
	// negative; only a broken history has one.
	later := func(key string, of func(c *claim) int64) {
		field(key, func(c *claim) int64 {
			switch t := of(c); {
			case t == 0:
				return 0
			case t >= c.Asked:
				return t - c.Asked + 1
			default:
				return t - c.Asked
			}
		})
	}
	t := table{}
	t.add("") // so that 0 is no text
	text := func(key string, of func(c *claim) string) {
		number(key, func(c *claim) int { return t.add(short(of(c))) })
	}

	var id, asked int64
	field("id", func(c *claim) int64 { return step(&id, c.ID) })
	field("asked", func(c *claim) int64 { return step(&asked, c.Asked) })
	later("answered", func(c *claim) int64 { return c.Answered })
	later("got", func(c *claim) int64 { return c.Got })
	later("believed", func(c *claim) int64 { return c.Believed })
	later("lost", func(c *claim) int64 { return c.Lost })
	later("told", func(c *claim) int64 { return c.Told })
	later("released", func(c *claim) int64 { return c.Released })
	later("freed", func(c *claim) int64 { return c.Freed })
	later("died", func(c *claim) int64 { return c.Died })
	later("used", func(c *claim) int64 { return c.used })
	text("mode", func(c *claim) string { return c.Mode })
	text("how", func(c *claim) string { return c.How })
	text("answer", func(c *claim) string { return c.Answer })
	text("problem", func(c *claim) string { return c.Error })
	text("why", func(c *claim) string { return c.Why })
	text("release", func(c *claim) string { return c.Release })
	field("group", func(c *claim) int64 { return c.Group })
	number("name", func(c *claim) int { return s.names.add(c.Name) })
	number("worker", func(c *claim) int { return c.Worker })
	number("life", func(c *claim) int { return c.Life })
	number("client", func(c *claim) int { return c.Client })
	number("weight", func(c *claim) int { return c.Weight })
	number("writes", func(c *claim) int { return c.writes })
	number("end", func(c *claim) int { return c.end })

	fences := make([]any, len(d.claims)) // 0 for none, 1 for the smallest fence of the name, and so on
	for i, at := range d.claims {
		switch c := s.claims[at]; {
		case c.Fence == 0:
			fences[i] = 0
		case c.Fence-bases[c.Name] >= 1<<53-1: // a number of a script has 53 bits
			fences[i] = strconv.FormatUint(c.Fence-bases[c.Name]+1, 10)
		default:
			fences[i] = c.Fence - bases[c.Name] + 1
		}
	}
	columns["fence"] = fences
	return columns, t.list
}

func short(s string) string {
	if len(s) <= longText {
		return s
	}
	cut := longText
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// step returns the difference between a value and the value before it.
func step(before *int64, now int64) int64 {
	d := now - *before
	*before = now
	return d
}

// sparse has the numbers of a column that are not 0. Each place is the difference from
// the place before it.
type sparse struct {
	Places []int64 `json:"at"`
	Values []int64 `json:"is"`
}

// packed returns numbers in the shortest form that the script reads: one number if all
// are the same; if few are not 0, only these, with their places; otherwise all.
func packed(column []int64) any {
	same, few, before := true, sparse{}, int64(0)
	for i, x := range column {
		same = same && x == column[0]
		if x != 0 {
			few.Places, few.Values = append(few.Places, step(&before, int64(i))), append(few.Values, x)
		}
	}
	switch {
	case same && len(column) > 0:
		return column[0]
	case len(few.Values) < len(column)/4:
		return few
	}
	return column
}
