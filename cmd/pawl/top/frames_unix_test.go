//go:build unix

package top

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/screen"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/overview"
	_ "github.com/pawl-go/pawl/memlock"
)

var update = flag.Bool("update", false, "rewrite the golden file of frames")

var noError = basictest.NoError

// noon is the time at which all these frames are drawn.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// viewOf returns a view of these rows, which were read a second before noon.
func viewOf(t *testing.T, rows ...*overview.Row) *overview.View {
	t.Helper()
	c, err := pawl.Open(t.Context(), "mem:", nil)
	noError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	v := *overview.New(c, nil).View()
	v.Rows, v.ScannedAt, v.Pace, v.Push = rows, noon.Add(-time.Second), 600*time.Millisecond, true
	return &v
}

// aLease returns a lease with a TTL of 30 s. At noon it has been held for the time held;
// when its row was read, it had the time left.
func aLease(host string, fence uint64, held, left time.Duration) pawl.Holder {
	return pawl.Holder{
		Fence: fence, Permits: driver.Exclusive, Limit: driver.Unlimited,
		Owner: pawl.Owner{Host: host, PID: 4242}, Since: noon.Add(-held), TTL: 30 * time.Second, ExpiresIn: left,
	}
}

func aWaiter(host string, waits time.Duration) pawl.Waiter {
	return pawl.Waiter{
		Permits: driver.Exclusive, Limit: driver.Unlimited,
		Owner: pawl.Owner{Host: host, PID: 4242}, Since: noon.Add(-waits), ExpiresIn: 5 * time.Second,
	}
}

func aRow(name string, holders []pawl.Holder, waiters ...pawl.Waiter) *overview.Row {
	r := &overview.Row{At: noon.Add(-time.Second)}
	r.Name, r.Holders, r.Waiters = name, holders, waiters
	for range holders {
		r.TTLs = append(r.TTLs, 30*time.Second)
	}
	return r
}

// usualRows returns rows with ordinary names, in byte order.
func usualRows() []*overview.Row {
	readers := []pawl.Holder{aLease("web-1", 1763626152000001, 3*time.Minute, 29*time.Second), aLease("web-2", 1763626152000002, 2*time.Minute, 25*time.Second)}
	for i := range readers {
		readers[i].Permits = 1
	}
	permits := []pawl.Holder{aLease("gpu-1", 1763626152000003, 26*time.Hour, 21*time.Second)}
	permits[0].Permits, permits[0].Limit = 2, 4
	mixed := []pawl.Holder{readers[0], permits[0]}
	closed := aRow("closed", nil)
	closed.ClosedFor = 20 * time.Second
	return []*overview.Row{
		aRow("catalog", readers), closed, aRow("gpu", permits), aRow("mixed", mixed),
		aRow("nightly", []pawl.Holder{aLease("web-1", 1763626152000004, 400*time.Hour, 25*time.Second)},
			aWaiter("web-7", 90*time.Second), aWaiter("web-8", 80*time.Second)),
		aRow("stuck", []pawl.Holder{aLease("old-1", 1763626152000005, 5*time.Minute, 4*time.Second)}, aWaiter("web-9", time.Second)),
		aRow("waited for", nil, aWaiter("web-9", time.Second)),
	}
}

// hostileRows returns rows with names and labels of an attacker.
func hostileRows() []*overview.Row {
	evil := aLease("h\x1b]0;owned\a", 1763626152000006, time.Minute, 25*time.Second)
	evil.Owner.Labels = map[string]string{"a\nb": "<script>\x9b2J"}
	return []*overview.Row{
		aRow("\x1b[2J\x1b[H", []pawl.Holder{evil}, aWaiter("w\r\x1b[A", time.Minute)),
		aRow("a\u202etxt.exe", []pawl.Holder{evil}),
		aRow(strings.Repeat("夜間バッチ", 17), []pawl.Holder{evil}),
		aRow(strings.Repeat("נעילה", 25), []pawl.Holder{evil}),
		aRow("z"+strings.Repeat("\u0301", 100), []pawl.Holder{evil}),
		aRow("\xff\xfe", []pawl.Holder{evil}),
	}
}

// A frame is one screen of the golden file: the view, the pressed keys, and the size.
type frame struct {
	what          string
	width, height int
	view          *overview.View
	keys          []screen.Key
	change        func(m *model)
}

func frames(t *testing.T) []frame {
	all := viewOf(t, usualRows()...)
	silent, unanswered, slow, damaged, polled := viewOf(t, usualRows()...), viewOf(t), viewOf(t, usualRows()...), viewOf(t, usualRows()...), viewOf(t, usualRows()...)
	silent.Err, silent.ErrSince = errors.New("pawl: redis db.example: list: no answer within 5s"), noon.Add(-30*time.Second)
	silent.ScannedAt = noon.Add(-time.Minute)
	unanswered.Err, unanswered.ScannedAt = errors.New("pawl: redis db.example: connection refused"), time.Time{}
	slow.ScannedAt = noon.Add(-4 * time.Second)
	damaged.Damaged, damaged.More = []overview.Damage{{Name: "x", Err: errors.New(`pawl: sqlite: list "x": its row is damaged`)}}, true
	polled.Push = false
	unlistable := viewOf(t)
	unlistable.Err, unlistable.ScannedAt = fmt.Errorf("pawl: the backend x cannot list names: %w", errors.ErrUnsupported), time.Time{}
	unscanned := viewOf(t)
	unscanned.ScannedAt = time.Time{}
	deadlocked := viewOf(t,
		aRow("a", []pawl.Holder{aLease("web-1", 1, time.Minute, 25*time.Second)}, aWaiter("web-2", time.Minute)),
		aRow("b", []pawl.Holder{aLease("web-2", 2, time.Minute, 25*time.Second)}, aWaiter("web-1", time.Minute)))
	crowd := viewOf(t, aRow("crowd", []pawl.Holder{aLease("web-1", 7, time.Minute, 25*time.Second)}, make([]pawl.Waiter, 5000)...))
	for i := range crowd.Rows[0].Waiters {
		crowd.Rows[0].Waiters[i] = aWaiter(fmt.Sprintf("web-%d", i), time.Duration(5000-i)*time.Second)
	}
	limits := aRow("gpu", usualRows()[2].Holders, aWaiter("web-1", time.Second))
	limits.Waiters[0].Permits, limits.Waiters[0].Limit, limits.Value = 1, 3, []byte("a\x1bb")
	released := aRow("kept", []pawl.Holder{aLease("web-1", 8, time.Minute, 25*time.Second)})
	released.Holders[0].Released = true
	onAll := func(what string, keys ...screen.Key) frame {
		return frame{what: what, width: 80, height: 16, view: all, keys: keys}
	}
	breakResult := func(err error) func(m *model) {
		return func(m *model) {
			m.showBreakResult(&question{name: "nightly", Holder: pawl.Holder{Fence: 17, Owner: pawl.Owner{Host: "web-1", PID: 4242, Labels: map[string]string{"job": "42"}}}, delay: m.delay}, err)
		}
	}
	return []frame{
		{what: "all names", width: 80, height: 24, view: all},
		{what: "all names, wide", width: 200, height: 60, view: all},
		{what: "all names, tiny", width: 20, height: 5, view: all},
		{what: "all names, one line", width: 10, height: 1, view: all},
		{what: "names that were made to do harm", width: 80, height: 24, view: viewOf(t, hostileRows()...)},
		{what: "one of them", width: 80, height: 12, view: viewOf(t, hostileRows()...), keys: []screen.Key{"enter"}},
		{what: "nothing", width: 80, height: 8, view: viewOf(t)},
		{what: "before the first look", width: 80, height: 8, view: unscanned},
		{what: "nothing was ever locked", width: 80, height: 8, change: func(m *model) { m.noClientText = "nothing was ever locked here: /home/me/locks.db does not exist yet" }},
		{what: "where nothing is pushed", width: 80, height: 8, view: polled},
		onAll("the last", "end"), onAll("by name", "s"), onAll("held longest", "s", "s", "r"), onAll("least time", "s", "s", "s"), onAll("most waiters", "s", "s", "s", "s"),
		onAll("typing a filter", "/", "w", "e", "b"), onAll("a filter", "/", "w", "e", "b", "-", "1", "enter"), onAll("nothing passes", "/", "夜", "enter"),
		onAll("help", "?"),
		{what: "an error", width: 80, height: 16, view: silent}, {what: "a look that takes long", width: 80, height: 16, view: slow},
		{what: "no answer yet", width: 80, height: 16, view: unanswered}, {what: "a backend that cannot list", width: 80, height: 16, view: unlistable},
		{what: "a damaged row, and too many", width: 80, height: 16, view: damaged},
		{what: "a deadlock", width: 80, height: 16, view: deadlocked}, {what: "one name of a deadlock", width: 80, height: 16, view: deadlocked, keys: []screen.Key{"enter"}},
		{what: "a deadlock, tiny", width: 20, height: 5, view: deadlocked},
		{what: "one name", width: 80, height: 16, view: all, keys: []screen.Key{"s", "j", "j", "j", "j", "enter"}},
		{what: "one name, closed", width: 80, height: 16, view: all, keys: []screen.Key{"s", "j", "enter"}},
		{what: "one name, tiny", width: 20, height: 5, view: all, keys: []screen.Key{"enter"}},
		{what: "one that nobody uses any more", width: 80, height: 8, view: all, keys: []screen.Key{"enter"}, change: func(m *model) { m.openName = "gone" }},
		{what: "one that cannot be read any more", width: 80, height: 8, view: damaged, keys: []screen.Key{"enter"}, change: func(m *model) { m.openName = "x" }},
		{what: "one that nobody holds yet", width: 80, height: 8, view: all, keys: []screen.Key{"end", "enter"}},
		{what: "5000 waiters", width: 80, height: 10, view: crowd, keys: []screen.Key{"enter", "end", "k"}},
		{what: "limits that differ", width: 80, height: 14, view: viewOf(t, limits), keys: []screen.Key{"enter"}},
		onAll("break", "b"), onAll("break, and another name", "b", "s", "t", "enter"), onAll("break, and the name", "b", "s", "t", "u", "c", "k", "enter"),
		onAll("break, and no", "b", "s", "esc"),
		{what: "break, and it is not allowed", width: 80, height: 12, view: all, change: func(m *model) { m.readOnly = true; m.press("b", false) }},
		{what: "break, tiny", width: 20, height: 5, view: all, keys: []screen.Key{"b", "s"}},
		{what: "break with the delay of the lease", width: 80, height: 12, view: all, change: func(m *model) { m.delay = 0; m.press("b", false) }},
		{what: "break with a delay of 0", width: 80, height: 12, view: all, change: func(m *model) { m.delay = -1; m.press("b", false) }},
		{what: "break what was released", width: 80, height: 12, view: viewOf(t, released), keys: []screen.Key{"b"}},
		{what: "break what is over", width: 80, height: 12, view: all, keys: []screen.Key{"b"}, change: func(m *model) { m.setView(viewOf(t)) }},
		onAll("break what several hold", "s", "b"), onAll("break what nobody holds", "s", "j", "b"),
		onAll("break a waiter", "s", "j", "j", "j", "j", "enter", "j", "b"), onAll("break inside, and nobody holds it", "s", "j", "enter", "b"),
		{what: "broken", width: 80, height: 10, view: all, change: breakResult(nil)},
		{what: "broken without delay", width: 80, height: 10, view: all, change: func(m *model) { m.delay = -1; breakResult(nil)(m) }},
		{what: "not broken", width: 80, height: 10, view: all, change: breakResult(noSuchLeaseError{})},
		{what: "not known whether it is broken", width: 80, height: 10, view: all, change: breakResult(errors.New("pawl: redis db.example: break: no answer"))},
	}
}

// The frames match the golden file, and fit the screen.
func TestFramesAreAsInTheGoldenFile(t *testing.T) {
	var out strings.Builder
	for _, f := range frames(t) {
		m := newModel(5 * time.Second)
		m.backend = "redis db.example"
		if f.view != nil {
			m.setView(f.view)
		}
		m.draw(f.width, f.height, noon)
		for _, k := range f.keys {
			m.press(k, false)
		}
		if f.change != nil {
			f.change(m)
		}
		lines := m.draw(f.width, f.height, noon)
		if len(lines) > f.height {
			t.Errorf("%s: %d lines on a screen of %d", f.what, len(lines), f.height)
		}
		fmt.Fprintf(&out, "== %s: %d x %d, keys %q\n%s\n", f.what, f.width, f.height, f.keys, plainText(lines, f.width, f.height))
	}
	const goldenFile = "testdata/frames.txt"
	if *update {
		noError(t, os.WriteFile(goldenFile, []byte(out.String()), 0o600))
	}
	if want, err := os.ReadFile(goldenFile); err != nil || out.String() != string(want) {
		t.Errorf("the frames differ from %s: see the diff after go test ./cmd/pawl/top -update\n%s", goldenFile, &out)
	}
}

// The longest times fit their columns, even with the mark of an overdue lease.
func TestTimesFitTheirColumns(t *testing.T) {
	cells := map[string]int{}
	for _, c := range columns {
		cells[c.head] = c.cells
	}
	const day = 24 * time.Hour
	for _, d := range []time.Duration{99 * time.Second, 99*time.Minute + 59*time.Second, 99*time.Hour + 59*time.Minute, 100*day - 1, 100 * day, math.MaxInt64} {
		if s := ago(d); len(s) > cells["HELD"] {
			t.Errorf("%q has %d cells, HELD has %d", s, len(s), cells["HELD"])
		}
		if s, _ := leftWords(d, true); len(s) > cells["LEFT"] {
			t.Errorf("%q has %d cells, LEFT has %d", s, len(s), cells["LEFT"])
		}
	}
}

// plainText returns the text of lines on a screen of that size, without the blanks at the
// ends of lines.
func plainText(lines []screen.Line, width, height int) string {
	var b strings.Builder
	for y := range height {
		text := ""
		if y < len(lines) {
			for _, span := range lines[y] {
				text += screen.Clean(span.Text)
			}
		}
		b.WriteString(strings.TrimRight(displaywidth.TruncateString(text, width, ""), " ") + "\n")
	}
	return b.String()
}

// noSuchLeaseError is the error of a break that found no such lease.
type noSuchLeaseError struct{}

func (noSuchLeaseError) Error() string        { return `pawl: no lease of "nightly" has the fence 17` }
func (noSuchLeaseError) Is(target error) bool { return target == pawl.ErrNoSuchLease }
