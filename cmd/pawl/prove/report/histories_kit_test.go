package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/internal/basictest"
)

// Helpers of all tests.
var noError, skipIfShort = basictest.NoError, basictest.SkipIfShort

// A plan describes a history for a test.
type plan struct {
	leases  int
	faults  int // each of them costs one holder its lease, or does nothing
	seconds int
	names   []history.Name
}

const (
	ttl    = int64(2 * time.Second)
	second = int64(time.Second)
)

var kindsOfNames = []history.Name{
	{Name: "a", Kind: history.Mutex, Limit: 1}, {Name: "b", Kind: history.Mutex, Limit: 1},
	{Name: "night", Kind: history.Mutex, Limit: 1}, {Name: "Night", Kind: history.Mutex, Limit: 1},
	{Name: "rw", Kind: history.RW, Limit: 1}, {Name: "permits", Kind: history.Semaphore, Limit: 3},
	{Name: "leader", Kind: history.Election, Limit: 1},
}

// A testHistory has the lines of a history and the checker's verdict. Only the first
// and the last line are in their order.
type testHistory struct {
	lines []history.Line
	v     *check.Verdict
}

func (m *testHistory) history() *history.History {
	h := &history.History{}
	for _, l := range m.lines {
		h.Add(l)
	}
	return h
}

// repeated returns a history with the given number of claims: it repeats the claims, each
// time later. It has the other lines once.
func (m *testHistory) repeated(claims int) *history.History {
	all := m.history()
	original := all.Claims
	all.Claims = nil
	for n := 0; n < claims; {
		round := int64(n)
		for _, old := range original {
			c := *old
			c.ID += round
			for _, t := range []*int64{&c.Asked, &c.Answered, &c.Got, &c.Believed, &c.Lost, &c.Woken, &c.Released, &c.Freed, &c.Died} {
				if *t != 0 {
					*t += round * 10e6
				}
			}
			n++
			all.Add(history.Line{Claim: &c})
		}
	}
	return all
}

// granted returns the claims of a name that were granted, in the order of their grants.
func (m *testHistory) granted(name string) []*history.Claim {
	var all []*history.Claim
	for _, l := range m.lines {
		if c := l.Claim; c != nil && c.Got > 0 && c.Name == name {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *history.Claim) int { return cmp.Compare(a.Got, b.Got) })
	return all
}

// makeHistory makes a history in which the names take turns. Each claim of a name waits
// until the claim before it has released. The wait of every thirteenth claim times out.
func makeHistory(p plan) *testHistory {
	const workers = 6
	if p.names == nil {
		p.names = kindsOfNames
	}
	end := int64(cmp.Or(p.seconds, 180)) * second
	calm, drain := end/6, end*11/12
	n := check.Numbers{
		Leases: p.leases, TimedOut: p.leases / 12, Writes: p.leases, FaultsByKind: map[string]int{}, Took: time.Duration(end),
		QueuePairs: p.leases / 2, PorcupineOperations: p.leases * 2, PorcupineNames: len(p.names), PorcupinePieces: p.leases / 20,
		CalmRate: 212.4, FaultRate: 148.9,
		WaitMedian: 1234 * time.Microsecond, WaitP99: 812 * time.Millisecond, WaitMax: 4 * time.Second,
		Handovers: p.leases / 3, HandoverMedian: 410 * time.Microsecond, MaxLossDelay: 1810 * time.Millisecond,
	}
	m := &testHistory{v: &check.Verdict{Count: map[string]int{}, Numbers: n}}
	m.add(history.Line{Run: &history.Run{
		Format: history.Format, Version: "v1.9.0", Begun: "2026-11-26T15:04:05Z",
		Command: "pawl prove --url redis://127.0.0.1:6379 --for 5m --seed 42", Backend: "Redis 8.4 at 127.0.0.1:6379",
		Lock: "pawl", Seed: 42, Workers: workers, TTL: ttl, Names: p.names, Ordered: true, Fenced: true, Faults: kindsOfFaults,
	}})
	for _, phase := range []history.Phase{
		{Phase: history.Calm, To: calm}, {Phase: history.Faults, From: calm, To: drain}, {Phase: history.Drain, From: drain, To: end},
	} {
		m.add(history.Line{Phase: &phase})
	}
	var lives [workers]history.Worker
	for w := range lives {
		lives[w] = history.Worker{Worker: w, Life: 1, PID: 4000 + w, End: "done"}
	}
	step := drain / int64(p.leases)
	turn := step * int64(len(p.names)) // from a lease to the next one of its name
	id, faults := int64(0), 0
	for i := range p.leases {
		id++
		name, at := p.names[i%len(p.names)], int64(i+1)*step
		asked := history.Claim{
			ID: id, Worker: i % workers, Life: lives[i%workers].Life, Client: i % 3,
			Name: name.Name, Mode: modeOf(name), Weight: 1, How: history.Wait, Asked: at,
		}
		if i%12 == 11 {
			id++
			late := asked
			late.ID, late.Asked, late.Answered, late.Answer, late.Error = id, at+step/2, at+turn, history.TimedOut, "context deadline exceeded"
			m.add(history.Line{Claim: &late})
		}
		c := &asked
		c.Answer, c.Fence, c.Got, c.Answered = history.Granted, 1795394594697011+900*uint64(i), at+turn*3/4, at+turn*3/4
		c.Believed, c.Released, c.Freed, c.Release = at+turn*3/2, at+turn*3/2, at+turn*3/2+1, history.OK
		if at > calm && faults < p.faults && (at-calm)*int64(p.faults) >= int64(faults)*(drain-calm) {
			m.addFault(kindsOfFaults[faults%len(kindsOfFaults)], c, &lives[c.Worker])
			faults++
		}
		m.add(history.Line{Claim: c})
	}
	for w := range lives {
		lives[w].To = end
		m.add(history.Line{Worker: &lives[w]})
	}
	for _, name := range p.names {
		m.add(history.Line{Left: &history.Left{At: end, Name: name.Name}})
	}
	m.add(history.Line{End: &history.End{At: end}})
	return m
}

func (m *testHistory) add(l history.Line) { m.lines = append(m.lines, l) }

func modeOf(name history.Name) string {
	switch name.Kind {
	case history.Semaphore:
		return history.Permits
	case history.RW:
		return history.Shared
	}
	return history.Whole
}

// kindsOfFaults are the kinds of the faults, in the order of their first occurrence.
var kindsOfFaults = []string{history.Overstay, history.Kill, history.Stop, history.Delay, history.ServerStop}

// addFault adds a fault that happens while a claim is held. An Overstay or a Stop costs
// its holder the lease, and a Kill ends its process. A Delay has no effect.
func (m *testHistory) addFault(kind string, c *history.Claim, life *history.Worker) {
	n := &m.v.Numbers
	f := history.Fault{Kind: kind, Worker: c.Worker, From: c.Got, To: c.Got + ttl, Hit: 1}
	switch kind {
	case history.Delay:
		f.Hit = 0
	case history.ServerStop:
		f.Worker = -1
	case history.Kill:
		c.Believed, c.Died, c.Released, c.Freed, c.Release = c.Got, c.Got+3e6, 0, 0, ""
		killed := *life
		killed.To, killed.End = c.Died, "killed"
		m.add(history.Line{Worker: &killed})
		life.Life, life.From = life.Life+1, c.Died
		n.Died++
	default:
		c.Believed, c.Lost, c.Woken, c.Release = c.Got, c.Got+ttl*9/10, c.Got+ttl, history.Late
		c.Why = "the lease was not renewed in time: context deadline exceeded"
		c.Released, c.Freed = c.Got+2*ttl, c.Got+2*ttl+5e5
		m.add(history.Line{Write: &history.Write{
			At: c.Released - 1e6, Claim: c.ID, Name: c.Name, Fence: c.Fence, Stale: true, PlainRead: 5, PlainBefore: 7,
		}})
		n.Lost, n.Woken, n.TakenOver, n.Stale, n.PlainLost = n.Lost+1, n.Woken+1, n.TakenOver+1, n.Stale+1, n.PlainLost+1
	}
	n.FaultsByKind[kind] += f.Hit
	m.add(history.Line{Fault: &f})
}

// plantOverlap plants a second holder: a mutex is granted while another claim holds it.
func (m *testHistory) plantOverlap(name string, part float64) {
	all := m.granted(name)
	for i := int(float64(len(all)) * part); i < len(all)-1; i++ {
		a, b := all[i], all[i+1]
		if a.Release != history.OK || b.Release != history.OK || a.Released-a.Got < 1e6 || a.Worker == b.Worker {
			continue
		}
		b.Asked, b.Got = min(b.Asked, a.Got), a.Released-(a.Released-a.Got)/3
		b.Answered, b.Believed = b.Got, max(b.Believed, b.Got)
		m.v.Violations = append(m.v.Violations, check.Violation{
			Rule: check.Overlap, Name: name, From: b.Got, To: a.Released, Claims: []int64{a.ID, b.ID},
			Text: fmt.Sprintf("Worker %d (claim %d) held %q from %.3f s to %.3f s. Worker %d (claim %d) got it at %.3f s.",
				a.Worker, a.ID, name, float64(a.Got)/1e9, float64(a.Released)/1e9, b.Worker, b.ID, float64(b.Got)/1e9),
		})
		m.v.Count[check.Overlap]++
		return
	}
	panic("no two leases are suitable for an overlap")
}
