package report

import (
	"cmp"
	"iter"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// A story is a history in the form that the report needs.
type story struct {
	run    history.Run
	phases []history.Phase
	faults []history.Fault // in the order of their begin
	lives  []history.Worker
	claims []claim // in the order of Asked
	marks  []mark  // in the order of time
	end    int64   // the latest time of the history
	names  table
	looked looked
}

// A claim of the history, with its use of the register.
type claim struct {
	*history.Claim
	end    int   // how it ended
	writes int   // to the register
	used   int64 // the time of the last of them
}

// How a claim ended. The script has the same numbers.
const (
	endNone     = iota // it was not granted
	endReleased        // released, and held until then
	endLost            // lost, and the holder knows it
	endDied            // its process ended first
	endUnknown         // nothing says how the lease ended
	endAsking          // it may have been granted: there is no answer
)

func endOf(c *history.Claim) int {
	switch {
	case c.Got == 0 && c.Answer == history.Unknown:
		return endAsking
	case c.Got == 0:
		return endNone
	case c.Lost != 0, c.Told != 0, c.Release == history.Late:
		return endLost
	case c.Release == history.OK:
		return endReleased
	case c.Died != 0:
		return endDied
	}
	return endUnknown
}

// odd reports whether a claim ended in another way than most.
func (c *claim) odd() bool { return c.end != endNone && c.end != endReleased }

// over returns the last time of a claim.
func (c *claim) over() int64 {
	return max(c.Asked, c.Answered, c.Got, c.Believed, c.Lost, c.Told, c.Released, c.Freed, c.Died, c.used)
}

// A mark is a moment of the register: a refused write, or a lost update.
type mark struct {
	kind   int // markStale or markLost
	at, id int64
	name   int
}

const (
	markStale = iota // the register that checks fences refused a write
	markLost         // the register that does not check lost an update
)

// looked has the number of things that each rule could check, where check.Numbers does
// not have it.
type looked struct {
	fences     int // leases with a fence
	releases   int // releases that were answered with OK
	ended      int // leases that were lost, or whose release came too late
	waited     int // granted claims that waited if the name was not free
	together   int // claims of several names
	writes     int // writes that the registers got
	calmClaims int
	left       int // names that were looked at in the end
}

// gather reads a history.
func gather(lines iter.Seq2[history.Line, error]) (*story, error) {
	s := &story{}
	var writes []*history.Write
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
			s.end = max(s.end, l.Phase.To)
		case l.Claim != nil:
			s.claims = append(s.claims, claim{Claim: l.Claim, end: endOf(l.Claim)})
			s.names.add(l.Claim.Name)
		case l.Write != nil:
			writes = append(writes, l.Write)
			s.names.add(l.Write.Name)
		case l.Fault != nil:
			s.faults = append(s.faults, *l.Fault)
			s.end = max(s.end, l.Fault.To)
		case l.Worker != nil:
			s.lives = append(s.lives, *l.Worker)
			s.end = max(s.end, l.Worker.To)
		case l.Left != nil:
			s.looked.left++
			s.end = max(s.end, l.Left.At)
		case l.End != nil:
			s.end = max(s.end, l.End.At)
		}
	}
	slices.SortStableFunc(s.claims, func(a, b claim) int { return cmp.Compare(a.Asked, b.Asked) })
	slices.SortStableFunc(s.faults, func(a, b history.Fault) int { return cmp.Compare(a.From, b.From) })
	s.use(writes)
	s.look()
	return s, nil
}

// use notes the writes: with their claims, and the odd ones as marks.
func (s *story) use(writes []*history.Write) {
	claims := make(map[int64]*claim, len(s.claims))
	for i := range s.claims {
		claims[s.claims[i].ID] = &s.claims[i]
	}
	s.looked.writes = len(writes)
	for _, w := range writes {
		s.end = max(s.end, w.At)
		if c := claims[w.Claim]; c != nil {
			c.writes, c.used = c.writes+1, max(c.used, w.At)
		}
		if w.Stale {
			s.marks = append(s.marks, mark{markStale, w.At, w.Claim, s.names.add(w.Name)})
		}
		if w.PlainRead != w.PlainBefore {
			s.marks = append(s.marks, mark{markLost, w.At, w.Claim, s.names.add(w.Name)})
		}
	}
	slices.SortStableFunc(s.marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
}

// look counts what the rules could check.
func (s *story) look() {
	var calm int64 // the end of the calm phase
	if i := slices.IndexFunc(s.phases, func(p history.Phase) bool { return p.Phase == history.Calm }); i >= 0 {
		calm = s.phases[i].To
	}
	groups := map[int64]bool{}
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	for i := range s.claims {
		c := &s.claims[i]
		s.end = max(s.end, c.over())
		if c.Group != 0 {
			groups[c.Group] = true
		}
		count(&s.looked.calmClaims, c.Asked < calm)
		count(&s.looked.fences, c.Got != 0 && c.Fence != 0)
		count(&s.looked.releases, c.end == endReleased)
		count(&s.looked.ended, c.end == endLost)
		count(&s.looked.waited, c.Got != 0 && c.How != history.Try)
	}
	s.looked.together = len(groups)
}

// A table numbers texts, because most texts of a history occur often.
type table struct {
	list []string
	at   map[string]int
}

// maxTexts bounds the table of a history with a different error in each claim.
const (
	maxTexts  = 20_000
	oneOfMany = "(one of very many texts)"
)

// add returns the number of a text.
func (t *table) add(s string) int {
	if i, ok := t.at[s]; ok {
		return i
	}
	if len(t.list) >= maxTexts && s != oneOfMany {
		return t.add(oneOfMany)
	}
	if t.at == nil {
		t.at = map[string]int{}
	}
	t.list = append(t.list, s)
	t.at[s] = len(t.list) - 1
	return t.at[s]
}
