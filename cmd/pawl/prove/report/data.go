package report

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/internal/visible"
)

// scriptData is the data of the script. All its texts are from visible.Text.
type scriptData struct {
	End        int64             `json:"end"`
	Workers    int               `json:"workers"`
	Names      []history.Name    `json:"names"`
	Texts      []string          `json:"texts"` // all other texts of claims
	Phases     []history.Phase   `json:"phases"`
	Lives      []history.Worker  `json:"lives"`
	Faults     []history.Fault   `json:"faults"`
	Marks      []mark            `json:"marks"`
	Violations []check.Violation `json:"violations"`
	Gaps       [][2]int64        `json:"gaps"`
	Rate       []int             `json:"rate"`   // the number of grants in each part of the run
	Shares     [][]int           `json:"shares"` // for each name, the percentage of each part for which it was held
	Fields     []string          `json:"fields"` // the keys of the values in Claims
	Claims     [][]any           `json:"claims"` // the values of each claim
}

const (
	maxWorkers = 10_000 // so that a broken history cannot make millions of rows
	maxText    = 400    // the largest size of a claim's text, in bytes
	rateParts  = 600    // the number of equal parts of the run in Rate
	shareParts = 1500   // the number of equal parts of the run in Shares
)

// data returns the data of the script as JSON without a "<".
func (s *story) data(d *choice, v *check.Verdict) []byte {
	e := scriptData{
		End: s.Last, Workers: min(s.Run.Workers, maxWorkers), Phases: slices.Clone(s.Phases), Lives: slices.Clone(s.Workers),
		Faults: slices.Clone(s.faults), Marks: s.marks, Violations: slices.Clone(v.Violations), Gaps: d.gaps, Rate: s.rate(),
	}
	if len(d.gaps) > 0 {
		e.Shares = s.shares()
	}
	e.Fields, e.Claims, e.Texts = s.rows(d)
	for i, text := range e.Texts {
		e.Texts[i] = visible.Text(text)
	}
	for _, n := range s.names.list {
		l := history.Name{Name: visible.Text(n), Limit: 1}
		for _, known := range s.Run.Names {
			if known.Name == n {
				l.Kind, l.Limit = visible.Text(known.Kind), known.Limit
			}
		}
		e.Names = append(e.Names, l)
	}
	for i := range e.Phases {
		e.Phases[i].Phase = visible.Text(e.Phases[i].Phase)
	}
	for i := range e.Lives {
		e.Lives[i].End = visible.Text(e.Lives[i].End)
	}
	for i := range e.Faults {
		e.Faults[i].Kind = visible.Text(e.Faults[i].Kind)
	}
	for i := range e.Violations {
		x := &e.Violations[i]
		x.Rule, x.Name, x.Text = visible.Text(x.Rule), visible.Text(x.Name), visible.Text(x.Text)
	}
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // impossible: it has only numbers and texts
	}
	return b
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

// shares returns, for each name, the percentage of each part of the run for which it was
// held. Leases held at the same time add up, to at most 100.
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

// rows returns the values of each chosen claim, the keys of the values, and texts. Some
// values are indexes of texts.
func (s *story) rows(d *choice) (keys []string, rows [][]any, texts []string) {
	t := table{}
	t.add("") // the index 0 means no text
	text := func(s string) int { return t.add(short(s)) }
	for _, at := range d.claims {
		c, fence := &s.claims[at], ""
		if c.Fence != 0 {
			fence = strconv.FormatUint(c.Fence, 10) // a number in JavaScript has only 53 bits
		}
		rows = append(rows, []any{
			c.ID, c.Asked, c.Answered, c.Got, c.Believed, c.Lost, c.Woken, c.Released, c.Freed, c.Died, c.lastWrite,
			c.Group, c.Worker, c.Life, c.Client, c.Weight, c.writes, c.end, s.names.add(c.Name), fence,
			text(c.Mode), text(c.How), text(c.Answer), text(c.Error), text(c.Why), text(c.Release),
		})
	}
	keys = strings.Fields("id asked answered got believed lost woken released freed died used " +
		"group worker life client weight writes end name fence " +
		"mode how answer problem why release")
	return keys, rows, t.list
}

func short(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…" // without a part of a character
}
