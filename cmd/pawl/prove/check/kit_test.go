package check

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// The names of the locks in these histories.
const (
	mutex = "a mutex"
	rw    = "an rw"
	three = "three permits"
)

// ms converts milliseconds after the begin to a time of a history.
func ms(n int64) int64 { return n * int64(time.Millisecond) }

// run returns the first line of a handwritten history. Its leases last one second.
func run(change ...func(*history.Run)) *history.Run {
	r := &history.Run{
		Format: history.Format, Lock: "pawl", TTL: ms(1000), Ordered: true, Fenced: true,
		Names: []history.Name{
			{Name: mutex, Kind: history.Mutex, Limit: 1},
			{Name: rw, Kind: history.RW, Limit: 1},
			{Name: three, Kind: history.Semaphore, Limit: 3},
		},
	}
	for _, f := range change {
		f(r)
	}
	return r
}

// A change sets fields of a claim.
type change func(*history.Claim)

// hold returns a claim of the mutex that was granted and released. Its times are in
// milliseconds, and its ID is the number of its worker.
func hold(id, asked, got, until int64, fence uint64, changes ...change) *history.Claim {
	c := &history.Claim{
		ID: id, Worker: int(id), Life: 1, Name: mutex, Mode: history.Whole, Weight: 1, How: history.Wait,
		Asked: ms(asked), Answered: ms(got), Answer: history.Granted, Got: ms(got), Fence: fence,
		Believed: ms(until), Released: ms(until), Freed: ms(until + 1), Release: history.OK,
	}
	for _, f := range changes {
		f(c)
	}
	return c
}

// wait returns a claim of the mutex that was not granted.
func wait(id, asked, answered int64, answer string, changes ...change) *history.Claim {
	c := &history.Claim{
		ID: id, Worker: int(id), Life: 1, Name: mutex, Mode: history.Whole, Weight: 1, How: history.Wait,
		Asked: ms(asked), Answered: ms(answered), Answer: answer,
	}
	for _, f := range changes {
		f(c)
	}
	return c
}

func onLock(name, mode string, weight int) change {
	return func(c *history.Claim) { c.Name, c.Mode, c.Weight = name, mode, weight }
}
func reader(c *history.Claim) { onLock(rw, history.Shared, 1)(c) }
func writer(c *history.Claim) { onLock(rw, history.Whole, 1)(c) }
func permits(weight int) change {
	return onLock(three, history.Permits, weight)
}
func byWorker(worker int) change  { return func(c *history.Claim) { c.Worker = worker } }
func how(how string) change       { return func(c *history.Claim) { c.How = how } }
func believed(until int64) change { return func(c *history.Claim) { c.Believed = ms(until) } }

// lost means that the holder lost its lease, and released it too late.
func lost(believed, lost, woken, released int64) change {
	return func(c *history.Claim) {
		c.Believed, c.Lost, c.Woken = ms(believed), ms(lost), ms(woken)
		c.Released, c.Freed, c.Release = ms(released), ms(released+1), history.Late
	}
}

// died means that the process of the holder died.
func died(believed, died int64) change {
	return func(c *history.Claim) {
		c.Believed, c.Died = ms(believed), ms(died)
		c.Released, c.Freed, c.Release = 0, 0, ""
	}
}

func fault(kind string, worker int, from, to int64) *history.Fault {
	return &history.Fault{Kind: kind, Worker: worker, From: ms(from), To: ms(to), Hit: 1}
}

// lines makes a history of its parts. It adds a Left line without holders and waiters for
// each name that has no Left line.
func lines(parts ...any) []history.Line {
	all := []history.Line{{}}
	r := run()
	left := map[string]bool{}
	var end int64
	var lastLine *history.End
	for _, p := range parts {
		var l history.Line
		switch p := p.(type) {
		case *history.Run:
			r = p
			continue
		case *history.Claim:
			l.Claim, end = p, max(end, p.Last())
		case []*history.Claim:
			for _, c := range p {
				all, end = append(all, history.Line{Claim: c}), max(end, c.Last())
			}
			continue
		case *history.Write:
			l.Write, end = p, max(end, p.At)
		case *history.Fault:
			l.Fault, end = p, max(end, p.To)
		case *history.Phase:
			l.Phase = p
		case *history.Worker:
			l.Worker = p
		case *history.Left:
			l.Left, left[p.Name] = p, true
		case *history.End:
			lastLine = p
			continue
		}
		all = append(all, l)
	}
	all[0].Run = r
	for _, n := range r.Names {
		if !left[n.Name] {
			all = append(all, history.Line{Left: &history.Left{At: end, Name: n.Name}})
		}
	}
	if lastLine == nil {
		lastLine = &history.End{At: end}
	}
	return append(all, history.Line{End: lastLine})
}

func historyOf(lines []history.Line) *history.History {
	h := &history.History{}
	for _, l := range lines {
		h.Add(l)
	}
	return h
}

func verdict(t testing.TB, parts ...any) *Verdict {
	t.Helper()
	return Run(historyOf(lines(parts...)))
}

// A historyCase is a history and the rules that it breaks.
type historyCase struct {
	name  string
	parts []any
	want  string // rules, with spaces between; empty if the history is correct
}

func checkCases(t *testing.T, cases []historyCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			v := verdict(t, tt.parts...)
			got := slices.Sorted(maps.Keys(v.Count))
			if want := slices.Sorted(slices.Values(strings.Fields(tt.want))); !slices.Equal(got, want) {
				t.Errorf("the history breaks the rules %q, want %q:\n%s", got, want, texts(v))
			}
		})
	}
}

func texts(v *Verdict) string {
	var b strings.Builder
	for _, x := range v.Violations {
		b.WriteString("\t" + x.Rule + ": " + x.Text + "\n")
	}
	return b.String()
}
