package report

import (
	"cmp"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// A story is a history with the data that the report derives from it.
type story struct {
	*history.History
	faults []history.Fault // in the order of their begin
	claims []claim         // in the order of Asked
	marks  []mark          // in the order of time
	names  table
}

// A claim of the history, with its use of the register.
type claim struct {
	*history.Claim
	end       int   // how it ended
	writes    int   // to the register
	lastWrite int64 // the time of the last write
}

// The ends of a claim. The script has the same numbers.
const (
	endNone     = iota // not granted
	endReleased        // released; the lease was held until then
	endLost            // lost, and the holder knows it
	endDied            // the process ended first
	endUnknown         // granted, but the end of the lease is unknown
	endAsking          // no answer, so it may have been granted
)

func endOf(c *history.Claim) int {
	switch {
	case c.Got == 0 && c.Answer == history.Unknown:
		return endAsking
	case c.Got == 0:
		return endNone
	case c.Lost != 0, c.Woken != 0, c.Release == history.Late:
		return endLost
	case c.Release == history.OK:
		return endReleased
	case c.Died != 0:
		return endDied
	}
	return endUnknown
}

// isAbnormal reports whether a claim was granted and not released, or had no answer.
func (c *claim) isAbnormal() bool { return c.end != endNone && c.end != endReleased }

// lastTime returns the time of the last event of a claim.
func (c *claim) lastTime() int64 {
	return max(c.Last(), c.lastWrite)
}

// A mark is a refused write or a lost update of a register.
type mark struct {
	Kind  int   `json:"kind"` // markStale or markLost
	At    int64 `json:"at"`
	Claim int64 `json:"claim"`
	Name  int   `json:"name"`
}

const (
	markStale = iota // the register that checks fences refused a write
	markLost         // the register that checks no fences lost an update
)

func newStory(h *history.History) *story {
	s := &story{History: h, faults: slices.Clone(h.Faults)}
	slices.SortStableFunc(s.faults, func(a, b history.Fault) int { return cmp.Compare(a.From, b.From) })
	for _, n := range h.Run.Names {
		s.names.add(n.Name)
	}
	for _, c := range h.Claims {
		s.claims = append(s.claims, claim{Claim: c, end: endOf(c)})
		s.names.add(c.Name)
	}
	slices.SortStableFunc(s.claims, func(a, b claim) int { return cmp.Compare(a.Asked, b.Asked) })
	claims := make(map[int64]*claim, len(s.claims))
	for i := range s.claims {
		claims[s.claims[i].ID] = &s.claims[i]
	}
	for _, w := range h.Writes {
		if c := claims[w.Claim]; c != nil {
			c.writes, c.lastWrite = c.writes+1, max(c.lastWrite, w.At)
		}
		if w.Stale {
			s.marks = append(s.marks, mark{markStale, w.At, w.Claim, s.names.add(w.Name)})
		}
		if w.PlainRead != w.PlainBefore {
			s.marks = append(s.marks, mark{markLost, w.At, w.Claim, s.names.add(w.Name)})
		}
	}
	slices.SortStableFunc(s.marks, func(a, b mark) int { return cmp.Compare(a.At, b.At) })
	return s
}

// count returns the number of claims of a kind.
func (s *story) count(is func(c *claim) bool) (n int) {
	for i := range s.claims {
		if is(&s.claims[i]) {
			n++
		}
	}
	return n
}

// A table replaces texts by numbers, because most texts of a history occur often.
type table struct {
	list []string
	at   map[string]int
}

// maxTexts bounds the table if each claim has a different error.
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
