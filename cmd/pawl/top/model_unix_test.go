//go:build unix

package top

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/screen"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/internal/overview"
)

// The cursor follows the name that the user has chosen. A cursor that no key has moved
// stays at its place.
func TestTheCursorStaysOnItsName(t *testing.T) {
	t.Parallel()
	held := func(name string, waiters int) *overview.Row {
		r := aRow(name, []pawl.Holder{aLease("web-1", 1, time.Minute, 25*time.Second)})
		for range waiters {
			r.Waiters = append(r.Waiters, aWaiter("web-2", time.Duration(waiters)*time.Minute))
		}
		return r
	}
	m := newModel(time.Second)
	m.setView(viewOf(t, held("a", 3), held("b", 2), held("c", 1)))
	m.draw(80, 24, noon)
	wantCursorOn := func(want string) {
		t.Helper()
		if got := m.selectedRow(); got == nil || got.Name != want {
			t.Errorf("the cursor is on %v, want %s", got, want)
		}
	}
	wantCursorOn("a")
	m.setView(viewOf(t, held("a", 1), held("b", 3), held("c", 2)))
	wantCursorOn("b") // it is the first row now
	m.press("down", false)
	wantCursorOn("c")
	m.setView(viewOf(t, held("a", 1), held("b", 2), held("c", 3)))
	wantCursorOn("c")
	m.setView(viewOf(t, held("a", 1), held("b", 2)))
	if m.selectedRow() == nil {
		t.Error("no row is selected")
	}
	m.setView(viewOf(t))
	if m.selectedRow() != nil || m.press("enter", false).quit || m.press("b", false).toBreak != nil {
		t.Error("a key has an effect on a row of an empty list")
	}
}

// A break has the fence that was shown, even if another claim holds the name by then.
func TestABreakHasTheFenceThatWasShown(t *testing.T) {
	t.Parallel()
	viewWithFence := func(fence uint64) *overview.View {
		return viewOf(t, aRow("x", []pawl.Holder{aLease("web-1", fence, time.Minute, 25*time.Second)}))
	}
	for _, input := range [][]screen.Key{{"x"}, {"1", "7"}} {
		m := newModel(time.Second)
		m.setView(viewWithFence(17))
		m.draw(80, 24, noon)
		m.press("b", false)
		m.setView(viewWithFence(18))
		for _, k := range input {
			if act := m.press(k, false); act.toBreak != nil {
				t.Fatalf("%q breaks the lease", k)
			}
		}
		if act := m.press("enter", false); act.toBreak == nil || act.toBreak.Fence != 17 || act.toBreak.name != "x" {
			t.Errorf("%q and enter: the action is %+v, want a break of the fence 17", input, act)
		}
	}
}

// A user may also type a name as the screen shows it.
func TestANameIsAcceptedAsTheScreenShowsIt(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"שלום", "a\u200db", " x ", "夜間", `say "x"`, "z\u0301\u0301\u0301"} {
		q := question{name: name, Holder: pawl.Holder{Fence: 17}}
		for _, input := range []string{name, words.QuoteIfNeeded(name), screen.Clean(words.QuoteIfNeeded(name)), "17"} {
			if !q.accepts(input) {
				t.Errorf("%q is not accepted for %q", input, name)
			}
		}
		for _, input := range []string{"", " ", "x y", "18", name + name} {
			if q.accepts(input) {
				t.Errorf("%q is accepted for %q", input, name)
			}
		}
	}
}

// After any keys, a frame fits on any screen, and no key breaks a lease without its name.
// Pasted keys are no commands.
func TestAnyKeysOnAnyScreen(t *testing.T) {
	t.Parallel()
	all := append(usualRows(), hostileRows()...)
	slices.SortFunc(all, func(a, b *overview.Row) int { return strings.Compare(a.Name, b.Name) })
	views := []*overview.View{viewOf(t, all...), viewOf(t, usualRows()...), viewOf(t)}
	keys := []screen.Key{"up", "down", "enter", "esc", "b", "/", "s", "r", "?", "end", "home", "pgup", "pgdown", "backspace", "夜", "x", "left", "ctrl+u", "tab", "alt+x"}
	for seed := range 100 {
		m, n := newModel(time.Second), seed
		next := func(below int) int { // the next number of a fixed sequence
			n = (n*1103515245 + 12345) & 0x7fffffff
			return (n >> 8) % below
		}
		for step := range 30 {
			m.setView(views[next(len(views))])
			width, height := 1+next(120), 1+next(30)
			lines := m.draw(width, height, noon)
			if len(lines) > height {
				t.Fatalf("seed %d, step %d: %d lines on a screen of %d", seed, step, len(lines), height)
			}
			plainText(lines, width, height)
			k, pasted := keys[next(len(keys))], next(5) == 0
			if act := m.press(k, pasted); act.quit || act.suspend || act.toBreak != nil {
				t.Fatalf("seed %d, step %d: %q returns %+v", seed, step, k, act)
			}
		}
	}
}

// BenchmarkFrame measures one frame of 10 000 names, or of 5 000 waiters.
func BenchmarkFrame(b *testing.B) {
	c, err := pawl.Open(b.Context(), "mem:", nil)
	noError(b, err)
	b.Cleanup(func() { _ = c.Close() })
	for what, rows := range map[string]func() []*overview.Row{
		"names": func() (rows []*overview.Row) {
			for i := range 10_000 {
				rows = append(rows, aRow(fmt.Sprintf("job:%05d", i), []pawl.Holder{aLease("web-1", 1, time.Minute, 25*time.Second)}))
			}
			return rows
		},
		"waiters": func() []*overview.Row {
			r := aRow("crowd", []pawl.Holder{aLease("web-1", 1, time.Minute, 25*time.Second)})
			for range 5000 {
				r.Waiters = append(r.Waiters, aWaiter("web-2", time.Minute))
			}
			return []*overview.Row{r}
		},
	} {
		b.Run(what, func(b *testing.B) {
			seen := rows()
			for b.Loop() {
				v := *overview.New(c, nil).View() // a new view, so that each frame sorts the rows
				v.Rows, v.ScannedAt = seen, noon.Add(-time.Second)
				m := newModel(time.Second)
				m.setView(&v)
				m.press("end", false)
				if len(seen) == 1 {
					m.press("enter", false)
					m.press("end", false)
				}
				m.draw(80, 24, noon)
			}
		})
	}
}
