package check

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// A mutation breaks a correct history. It returns rules, with blanks between them; at
// least one of these rules must find a violation. It returns "" if it cannot break this
// history.
type mutation func(t *rapid.T, h *mutable) (rules string)

// mutable is a copy of a history. granted has the grants of each name, in their order.
type mutable struct {
	lines   []history.Line
	granted [][]*history.Claim
	end     int64
}

func newMutable(lines []history.Line) *mutable {
	lines = slices.Clone(lines)
	for i, l := range lines {
		if l.Claim != nil {
			c := *l.Claim
			lines[i].Claim = &c
		}
		if l.Write != nil {
			x := *l.Write
			lines[i].Write = &x
		}
	}
	m := &mutable{lines: lines}
	names := map[string]int{}
	for _, l := range lines {
		if l.End != nil {
			m.end = l.End.At
		}
		if l.Claim == nil || l.Claim.Answer != history.Granted {
			continue
		}
		i, ok := names[l.Claim.Name]
		if !ok {
			i = len(m.granted)
			names[l.Claim.Name], m.granted = i, append(m.granted, nil)
		}
		m.granted[i] = append(m.granted[i], l.Claim)
	}
	for _, g := range m.granted {
		slices.SortFunc(g, func(a, b *history.Claim) int { return cmp.Compare(a.Got, b.Got) })
	}
	return m
}

// simulated returns correct histories. Each mutation can break most of them.
var simulated = sync.OnceValue(func() (all [][]history.Line) {
	for seed := uint64(0); len(all) < 5; seed++ {
		lines := simulate(seed, 4+int(seed%5), ms(3000), history.Stop, history.Kill, history.Silence)
		if slices.ContainsFunc(lines, func(l history.Line) bool { return l.Write != nil && l.Write.Stale }) {
			all = append(all, lines)
		}
	}
	return all
})

// drawPair draws two claims of a name, a before b, for which ok holds.
func (m *mutable) drawPair(t *rapid.T, ok func(a, b *history.Claim) bool) (a, b *history.Claim) {
	var all [][2]*history.Claim
	for _, g := range m.granted {
		for i, b := range g {
			for _, a := range g[max(0, i-4):i] {
				if ok(a, b) {
					all = append(all, [2]*history.Claim{a, b})
				}
			}
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	p := rapid.SampledFrom(all).Draw(t, "pair")
	return p[0], p[1]
}

func (m *mutable) drawWrite(t *rapid.T, ok func(x *history.Write) bool) int {
	var all []int
	for i, l := range m.lines {
		if l.Write != nil && ok(l.Write) {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return -1
	}
	return rapid.SampledFrom(all).Draw(t, "write")
}

var mutations = map[string]mutation{
	"a holder believes too long": func(t *rapid.T, m *mutable) string {
		a, b := m.drawPair(t, func(a, b *history.Claim) bool { return a.Mode == history.Whole && wasSure(b) && a.Believed < b.Got })
		if a == nil {
			return ""
		}
		a.Believed = rapid.Int64Range(b.Got+1, b.Believed+ms(1)).Draw(t, "believed")
		return Overlap
	},
	"a release says OK too late": func(t *rapid.T, m *mutable) string {
		a, b := m.drawPair(t, func(a, b *history.Claim) bool {
			return a.Mode == history.Whole && a.Release == history.OK && a.Fence < b.Fence
		})
		if a == nil {
			return ""
		}
		a.Released, a.Freed = b.Got+1, b.Got+2
		return ReleaseLied
	},
	"two fences are swapped": func(t *rapid.T, m *mutable) string {
		a, b := m.drawPair(t, func(a, b *history.Claim) bool { return a.Got < b.Asked })
		if a == nil {
			return ""
		}
		a.Fence, b.Fence = b.Fence, a.Fence
		return FenceFalls
	},
	"two fences are equal": func(t *rapid.T, m *mutable) string {
		a, b := m.drawPair(t, func(a, b *history.Claim) bool { return true })
		if a == nil {
			return ""
		}
		a.Fence = b.Fence
		return FenceTwice
	},
	"a stale write is accepted": func(t *rapid.T, m *mutable) string {
		i := m.drawWrite(t, func(x *history.Write) bool { return x.Stale })
		if i < 0 {
			return ""
		}
		m.lines[i].Write.Accepted, m.lines[i].Write.Stale = true, false
		return "stale-accepted register" // the second one if the newer holder had not written yet
	},
	"a write is forgotten": func(t *rapid.T, m *mutable) string {
		i := m.drawWrite(t, func(x *history.Write) bool { return x.Accepted })
		if i < 0 {
			return ""
		}
		name := m.lines[i].Write.Name
		if !slices.ContainsFunc(m.lines[i+1:], func(l history.Line) bool {
			return l.Write != nil && l.Write.Name == name && l.Write.Accepted
		}) {
			return ""
		}
		m.lines = slices.Delete(slices.Clone(m.lines), i, i+1)
		return Register
	},
	"an update is lost": func(t *rapid.T, m *mutable) string {
		i := m.drawWrite(t, func(x *history.Write) bool { return x.Accepted && x.Read > 0 })
		if i < 0 {
			return ""
		}
		m.lines[i].Write.Read--
		return Register
	},
	"a holder never sees its loss": func(t *rapid.T, m *mutable) string {
		a, b := m.drawPair(t, func(a, b *history.Claim) bool {
			return a.Mode == history.Whole && a.Fence < b.Fence && a.Died == 0
		})
		if a == nil || m.end < b.Got+ms(4000) {
			return ""
		}
		a.Lost, a.Woken, a.Released, a.Freed, a.Release = 0, 0, 0, 0, ""
		return LossNotSeen
	},
}

func TestTheCheckerFindsEachMutation(t *testing.T) {
	for name, mutate := range mutations {
		t.Run(name, func(t *testing.T) {
			tried := 0
			rapid.Check(t, func(t *rapid.T) {
				lines := rapid.SampledFrom(simulated()).Draw(t, "history")
				m := newMutable(lines)
				rules := strings.Fields(mutate(t, m))
				if len(rules) == 0 {
					return
				}
				tried++
				v := checked(m.lines)
				if !slices.ContainsFunc(rules, func(r string) bool { return v.Count[r] > 0 }) {
					t.Errorf("no violation of the rules %q, only\n%s", rules, texts(v))
				}
			})
			if tried == 0 {
				t.Error("the mutation could break no history")
			}
			t.Logf("tried %d times", tried)
		})
	}
}
