package report

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/internal/basictest"
)

// Helpers of all tests.
var noError, nightly = basictest.NoError, basictest.Nightly

// A plan describes a history for a test. A small simulation of a server that serves
// claims in their order makes the history.
type plan struct {
	seed    uint64
	leases  int
	workers int
	actors  int // the number of concurrent claims of each worker
	names   []history.Name
	faults  int // of workers
	seconds int
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

// A simulatedHistory has the lines of a history and the checker's verdict. Only the first
// and the last line are in their order.
type simulatedHistory struct {
	lines []history.Line
	v     *check.Verdict
}

func (m *simulatedHistory) history() *history.History {
	h := &history.History{}
	for _, l := range m.lines {
		h.Add(l)
	}
	return h
}

// repeated returns a history that repeats the claims, each time later, until it has that
// many. It has the other lines once.
func (m *simulatedHistory) repeated(claims int) *history.History {
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
func (m *simulatedHistory) granted(name string) []*history.Claim {
	var all []*history.Claim
	for _, l := range m.lines {
		if c := l.Claim; c != nil && c.Got > 0 && c.Name == name {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *history.Claim) int { return cmp.Compare(a.Got, b.Got) })
	return all
}

// A simulation makes a history.
type simulation struct {
	plan
	dice   *rand.Rand
	m      *simulatedHistory
	end    int64
	free   map[string][]int64 // when each permit of a name is free again
	faults []history.Fault
	life   []int
	fence  uint64
	n      int64
	length int64 // the average duration of a section, about
	think  int64 // the average time between two claims of an actor
}

// makeHistory simulates a history. It makes no writes to the registers except the ones
// that get a mark.
func makeHistory(p plan) *simulatedHistory {
	if p.workers == 0 {
		p.workers = 6
	}
	if p.actors == 0 {
		p.actors = 3
	}
	if p.names == nil {
		p.names = kindsOfNames
	}
	s := &simulation{plan: p, dice: rand.New(rand.NewPCG(p.seed, 1)), free: map[string][]int64{}, fence: 1795394594697011,
		life: make([]int, p.workers)}
	s.m = &simulatedHistory{v: &check.Verdict{Count: map[string]int{}, Numbers: check.Numbers{FaultsByKind: map[string]int{}}}}
	if p.seconds == 0 {
		s.seconds = 180
	}
	s.end = int64(s.seconds) * second
	s.length = s.end * int64(len(p.names)) / int64(5*p.leases)
	s.think = max(1e6, s.end*int64(p.workers*p.actors)/int64(p.leases)-2*s.length)
	s.m.lines = append(s.m.lines, history.Line{Run: &history.Run{
		Format: history.Format, Version: "v1.9.0", Begun: "2026-11-26T15:04:05Z",
		Command: "pawl prove --url redis://127.0.0.1:6379 --for 5m --seed 42", Backend: "Redis 8.4 at 127.0.0.1:6379",
		Lock: "pawl", Seed: 42, Workers: p.workers, TTL: ttl, Names: p.names, Ordered: true, Fenced: true,
		Faults: []string{history.Stop, history.Kill, history.Overstay, history.Delay, history.Cut, history.ServerStop},
	}})
	s.makeFaults()
	s.work()
	s.close()
	return s.m
}

// makeFaults makes the phases, and the faults after the calm phase.
func (s *simulation) makeFaults() {
	kinds := []string{history.Stop, history.Kill, history.Overstay, history.Delay, history.Cut, history.Swallow}
	calm, drain := s.end/6, s.end*11/12
	for i := range s.plan.faults {
		from := calm + (drain-calm)*int64(i)/int64(s.plan.faults) + s.dice.Int64N(second)
		f := history.Fault{Kind: kinds[s.dice.IntN(len(kinds))], Worker: s.dice.IntN(s.workers), From: from, Hit: 1}
		switch f.Kind {
		case history.Kill, history.Cut:
			f.To = from + 3e6
		case history.Overstay:
			f.To = from + 2*ttl
		default:
			f.To = from + ttl + s.dice.Int64N(ttl)
		}
		if i%40 == 39 {
			f.Kind, f.Worker = history.ServerStop, -1
		}
		if s.dice.IntN(10) == 0 && f.Kind == history.Delay {
			f.Hit = 0
		} else {
			s.m.v.Numbers.FaultsByKind[f.Kind]++
		}
		s.faults = append(s.faults, f)
		s.m.lines = append(s.m.lines, history.Line{Fault: &f})
	}
	slices.SortFunc(s.faults, func(a, b history.Fault) int { return cmp.Compare(a.From, b.From) })
	for _, p := range []history.Phase{{Phase: history.Calm, To: calm}, {Phase: history.Faults, From: calm, To: drain},
		{Phase: history.Drain, From: drain, To: s.end}} {
		s.m.lines = append(s.m.lines, history.Line{Phase: &p})
	}
}

// work makes the claims of all actors, in the order of Asked.
func (s *simulation) work() {
	next := make([]int64, s.workers*s.actors)
	for i := range next {
		next[i] = s.dice.Int64N(second)
	}
	for {
		actor := 0
		for i, t := range next {
			if t < next[actor] {
				actor = i
			}
		}
		if next[actor] > s.end*11/12 {
			break
		}
		next[actor] = s.claim(actor/s.actors, actor%s.actors, next[actor]) + s.dice.Int64N(2*s.think)
	}
}

func (s *simulation) claim(worker, client int, asked int64) int64 {
	name := s.names[s.dice.IntN(len(s.names))]
	s.n++
	c := &history.Claim{ID: s.n, Worker: worker, Life: s.life[worker] + 1, Client: client, Name: name.Name,
		Mode: history.Whole, Weight: 1, How: history.Wait, Asked: asked}
	free := s.free[name.Name]
	if free == nil {
		free = make([]int64, max(name.Limit, map[string]int{history.RW: 3}[name.Kind], 1))
		s.free[name.Name] = free
	}
	slices.Sort(free)
	uses := free[:1]
	switch {
	case name.Kind == history.Semaphore:
		c.Mode = history.Permits
	case name.Kind == history.RW && s.dice.IntN(4) > 0:
		c.Mode = history.Shared
	default:
		uses = free
	}
	got := max(asked, slices.Max(uses)) + 2e5 + s.dice.Int64N(5e5)
	if wait := got - asked; wait > 5*second || s.dice.IntN(12) == 0 && wait > 1e6 {
		c.Answered, c.Answer, c.Error = asked+min(wait, 8e8), history.TimedOut, "context deadline exceeded"
		s.m.v.Numbers.TimedOut++
		s.emit(c)
		return c.Answered
	}
	c.Answered, c.Got, c.Answer, c.Fence = got, got, history.Granted, s.fence
	s.fence += 1 + uint64(s.dice.IntN(900))
	s.m.v.Numbers.Leases++
	continues, freed := s.hold(c)
	for i := range uses {
		uses[i] = freed
	}
	s.emit(c)
	return continues
}

// hold ends a lease by its release or by a fault of its worker. It returns when the actor
// continues, and when the name is free.
func (s *simulation) hold(c *history.Claim) (continues, free int64) {
	long := s.dice.Int64N(2 * s.length)
	if s.dice.IntN(100) == 0 {
		long = s.dice.Int64N(20 * s.length)
	}
	until := c.Got + long
	first, _ := slices.BinarySearchFunc(s.faults, c.Got-2*ttl, func(f history.Fault, t int64) int { return cmp.Compare(f.From, t) })
	for _, f := range s.faults[first:] {
		if f.From > until {
			break
		}
		if f.Worker != c.Worker || f.To < c.Got || f.Hit == 0 {
			continue
		}
		at := max(c.Got, f.From)
		switch f.Kind {
		case history.Kill:
			c.Believed, c.Died = at, f.To
			s.life[c.Worker]++
			s.m.v.Numbers.Died++
			return f.To + 5e7, at + ttl
		case history.Stop, history.Overstay, history.Swallow:
			return s.lose(c, f, at)
		}
	}
	c.Believed, c.Released, c.Freed, c.Release = until, until+1e5, until+4e5, history.OK
	s.m.v.Numbers.Writes++
	return c.Freed, until + 3e5
}

func (s *simulation) lose(c *history.Claim, f history.Fault, at int64) (continues, free int64) {
	c.Believed, c.Lost, c.Woken = at, at+ttl*9/10, at+ttl*9/10+1e6
	if f.Kind == history.Stop {
		c.Lost, c.Woken = max(f.To, c.Lost), max(f.To, c.Lost)+1e6
	}
	c.Why = "the lease was not renewed in time: context deadline exceeded"
	c.Released = c.Woken + 1e6
	if f.Kind == history.Overstay {
		c.Released += ttl
		s.fence++
		s.m.v.Numbers.Stale++
		s.m.lines = append(s.m.lines, history.Line{Write: &history.Write{At: c.Released - 1e6, Claim: c.ID, Name: c.Name,
			Fence: c.Fence, Stale: true, PlainRead: 5, PlainBefore: 7}})
		s.m.v.Numbers.PlainLost++
	}
	c.Freed, c.Release = c.Released+5e5, history.Late
	s.m.v.Numbers.Lost++
	s.m.v.Numbers.Woken++
	s.m.v.Numbers.TakenOver++
	return c.Freed, at + ttl
}

func (s *simulation) emit(c *history.Claim) { s.m.lines = append(s.m.lines, history.Line{Claim: c}) }

// close adds the last lines and numbers of the history.
func (s *simulation) close() {
	for w := range s.workers {
		begun := int64(0)
		for life := range s.life[w] + 1 {
			to := s.end * int64(life+1) / int64(s.life[w]+1)
			l := history.Worker{Worker: w, Life: life + 1, PID: 4000 + w*100 + life, From: begun, To: to, End: "done"}
			s.m.lines = append(s.m.lines, history.Line{Worker: &l})
			begun = to
		}
	}
	for _, n := range s.names {
		s.m.lines = append(s.m.lines, history.Line{Left: &history.Left{At: s.end, Name: n.Name}})
	}
	s.m.lines = append(s.m.lines, history.Line{End: &history.End{At: s.end}})
	n := &s.m.v.Numbers
	n.Took = time.Duration(s.end)
	n.QueuePairs, n.PorcupineOperations, n.PorcupineNames, n.PorcupinePieces = n.Leases/2, n.Leases*2, len(s.names), n.Leases/20
	n.CalmRate, n.FaultRate = 212.4, 148.9
	n.WaitMedian, n.WaitP99, n.WaitMax = 1234*time.Microsecond, 812*time.Millisecond, 4*time.Second
	n.Handovers, n.HandoverMedian, n.MaxLossDelay = n.Leases/3, 410*time.Microsecond, 1810*time.Millisecond
}

// overlap plants a second holder: a mutex is granted while another claim holds it.
func (m *simulatedHistory) overlap(name string, part float64) {
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
