package report

import (
	"cmp"
	"iter"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// A story is a history in little memory: about 200 bytes for a claim.
type story struct {
	run    history.Run
	phases []history.Phase
	faults []history.Fault // in the order of their begin
	lives  []history.Worker
	claims []claim // in the order of Asked
	marks  []mark  // in the order of time
	end    int64   // the latest time of the history
	names  table
	texts  table // all other texts of claims
	looked looked
}

// looked has the number of things that each rule could check, where check.Numbers does
// not have it.
type looked struct {
	fences     int // leases with a fence
	releases   int // releases that were answered with OK
	ended      int // leases that were lost, or whose release came too late
	waited     int // granted claims that had to wait
	together   int // claims of several names
	writes     int // writes that the registers got
	calmClaims int
	left       int // names that were looked at in the end
}

// A mark is a moment of the register: a refused write, or a lost update.
type mark struct {
	kind   int // markStale or markLost
	at, id int64
	name   int32
}

const (
	markStale = iota // the register that checks fences refused a write
	markLost         // the register that does not check lost an update
)

// A use is the use of the register by one claim: its writes, and the time of the last.
type use struct {
	writes int32
	last   int64
}

// gather reads a history.
func gather(lines iter.Seq2[history.Line, error]) (*story, error) {
	s := &story{}
	s.texts.add("") // texts start with it, so that 0 is no text
	used := map[int64]use{}
	groups := map[int64]bool{}
	for l, err := range lines {
		if err != nil {
			return nil, err
		}
		switch {
		case l.Run != nil:
			s.run = *l.Run
			for _, n := range l.Run.Names {
				s.names.add(n.Name)
			}
		case l.Phase != nil:
			s.phases = append(s.phases, *l.Phase)
			s.until(l.Phase.To)
		case l.Claim != nil:
			s.claims = append(s.claims, s.pack(l.Claim))
			if l.Claim.Group != 0 {
				groups[l.Claim.Group] = true
			}
		case l.Write != nil:
			s.write(l.Write)
			u := used[l.Write.Claim]
			used[l.Write.Claim] = use{u.writes + 1, max(u.last, l.Write.At)}
		case l.Fault != nil:
			s.faults = append(s.faults, *l.Fault)
			s.until(l.Fault.To)
		case l.Worker != nil:
			s.lives = append(s.lives, *l.Worker)
			s.until(l.Worker.To)
		case l.Left != nil:
			s.looked.left++
			s.until(l.Left.At)
		case l.End != nil:
			s.until(l.End.At)
		}
	}
	s.looked.together = len(groups)
	s.settle(used)
	return s, nil
}

func (s *story) until(t int64) { s.end = max(s.end, t) }

// write notes the writes that the timeline shows by themselves.
func (s *story) write(w *history.Write) {
	s.looked.writes++
	s.until(w.At)
	m := mark{at: w.At, id: w.Claim, name: s.names.add(w.Name)}
	if w.Stale {
		m.kind = markStale
		s.marks = append(s.marks, m)
	}
	if w.PlainRead != w.PlainBefore {
		m.kind = markLost
		s.marks = append(s.marks, m)
	}
}

// settle is called when all lines were read.
func (s *story) settle(used map[int64]use) {
	slices.SortStableFunc(s.claims, func(a, b claim) int { return cmp.Compare(a.asked, b.asked) })
	slices.SortStableFunc(s.faults, func(a, b history.Fault) int { return cmp.Compare(a.From, b.From) })
	slices.SortStableFunc(s.marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	calm := s.calm()
	for i := range s.claims {
		c := &s.claims[i]
		u := used[c.id]
		c.writes, c.used = u.writes, u.last
		s.until(c.over())
		if c.asked < calm {
			s.looked.calmClaims++
		}
		s.count(c)
	}
}

// calm returns the time at which the calm phase ends, or 0.
func (s *story) calm() int64 {
	for _, p := range s.phases {
		if p.Phase == history.Calm {
			return p.To
		}
	}
	return 0
}

func (s *story) count(c *claim) {
	if c.got == 0 {
		return
	}
	if c.fence != 0 {
		s.looked.fences++
	}
	if c.end == endReleased {
		s.looked.releases++
	}
	if c.end == endLost {
		s.looked.ended++
	}
	if s.texts.list[c.how] != history.Try {
		s.looked.waited++
	}
}

// A table numbers texts, because most texts of a history occur often.
type table struct {
	list []string
	at   map[string]int32
}

// mostTexts bounds the table of a history with a different error in each claim.
const (
	mostTexts = 20_000
	oneOfMany = "(one of very many texts)"
)

// add returns the number of a text.
func (t *table) add(s string) int32 {
	if i, ok := t.at[s]; ok {
		return i
	}
	if len(t.list) >= mostTexts && s != oneOfMany {
		return t.add(oneOfMany)
	}
	if t.at == nil {
		t.at = map[string]int32{}
	}
	i := int32(len(t.list))
	t.list = append(t.list, s)
	t.at[s] = i
	return i
}
