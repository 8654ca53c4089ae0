package screen

import (
	"cmp"
	"reflect"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
	"github.com/gdamore/tcell/v3"
	"github.com/gdamore/tcell/v3/vt"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/internal/basictest"
)

var noError = basictest.NoError

// openMock opens a screen on the mock terminal of tcell.
func openMock(t *testing.T, width, height int) (*Screen, vt.MockTerm) {
	t.Helper()
	mock := vt.NewMockTerm(vt.MockOptSize{X: vt.Col(width), Y: vt.Row(height)})
	terminal, err := tcell.NewTerminfoScreenFromTty(mock, tcell.OptNegotiation(false))
	noError(t, err)
	s, err := open(terminal, nil)
	noError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, mock
}

// Each key has its name, and pasted keys are marked.
func TestKeys(t *testing.T) {
	s, mock := openMock(t, 80, 24)
	pressed := func(keys ...Key) (events []Event) {
		for _, k := range keys {
			events = append(events, Event{Key: k})
		}
		return events
	}
	for _, c := range []struct {
		sent string
		want []Event
	}{
		{"q?/é夜", pressed("q", "?", "/", "é", "夜")},
		{"\r\n\x7f\b", pressed("enter", "enter", "backspace", "backspace")},
		{"\x02\x03\x06\x15\x1a", pressed("ctrl+b", "ctrl+c", "ctrl+f", "ctrl+u", "ctrl+z")},
		{"\x1b[A\x1b[B\x1b[C\x1b[D", pressed("up", "down", "right", "left")},
		{"\x1bOA\x1bOH\x1bOF", pressed("up", "home", "end")},
		{"\x1b[H\x1b[4~\x1b[5~\x1b[6~", pressed("home", "end", "pgup", "pgdown")},
		{"\x1b[1;5A\x1b[5;2~", pressed("up", "pgup")}, // with Ctrl, with Shift
		{"\x1b", pressed("esc")},
		{"\x1bxq", pressed("q")},                    // Alt
		{"\x1b[99~q", pressed("q")},                 // an unknown key
		{"\x1b[?62;1cq", pressed("q")},              // an unrequested answer
		{"\x1b]11;rgb:0/0/0\x1b\\q", pressed("q")},  //
		{"\x1bPhello\x1b\\q", pressed("q")},         //
		{"\x1b[I\x1b[O\x1b[<0;1;1Mq", pressed("q")}, // the focus, and the mouse
		{"a\x1b[200~y\r\x1b[201~b", []Event{{Key: "a"}, {Key: "y", Pasted: true}, {Key: "enter", Pasted: true}, {Key: "b"}}},
	} {
		mock.SendRaw([]byte(c.sent))
		var got []Event
		for range c.want {
			e := <-s.Events()
			for e.Redraw {
				e = <-s.Events()
			}
			got = append(got, e)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q are the keys %v, want %v", c.sent, got, c.want)
		}
	}
}

// shown returns the text on the terminal.
func shown(mock vt.MockTerm, width, height int) string {
	var b strings.Builder
	for y := range height {
		var row strings.Builder
		for x := 0; x < width; x++ {
			c := mock.GetCell(vt.Coord{X: vt.Col(x), Y: vt.Row(y)})
			row.WriteString(cmp.Or(c.C, " "))
			if c.W == 2 {
				x++
			}
		}
		b.WriteString(strings.TrimRight(row.String(), " ") + "\n")
	}
	return b.String()
}

// The frames before the last leave nothing on the terminal.
func TestTheTerminalShowsTheLastFrame(t *testing.T) {
	const width, height = 16, 4
	s, mock := openMock(t, width, height)
	pieces := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", " ", "夜", "é", "🔒", "\x1b", "\u05d0", "\n"}), 0, 20)
	text := rapid.Map(pieces, func(p []string) string { return strings.Join(p, "") })
	rapid.Check(t, func(t *rapid.T) {
		for range rapid.IntRange(1, 6).Draw(t, "frames") {
			var lines []Line
			want := make([]string, height)
			for y := range rapid.IntRange(0, height).Draw(t, "lines") {
				var line Line
				for range rapid.IntRange(0, 3).Draw(t, "spans") {
					span := Span{text.Draw(t, "text"), Style(rapid.IntRange(0, 63).Draw(t, "style"))}
					line = append(line, span)
					want[y] += Clean(span.Text)
				}
				lines = append(lines, line)
				want[y] = strings.TrimRight(displaywidth.TruncateString(want[y], width, ""), " ")
			}
			s.show(lines)
			if got, want := shown(mock, width, height), strings.Join(want, "\n")+"\n"; got != want {
				t.Fatalf("the terminal shows\n%q, want\n%q", got, want)
			}
		}
	})
}

func TestNOCOLORRemovesTheColors(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	for _, noColor := range []string{"", "1"} {
		t.Setenv("NO_COLOR", noColor)
		s, mock := openMock(t, 20, 1)
		s.show([]Line{{{"b", Bold | Red}, {"g", Green}, {"-", 0}}})
		at := func(x vt.Col) vt.Style { return mock.GetCell(vt.Coord{X: x}).S }
		if colors := at(0).Fg() != at(2).Fg() && at(1).Fg() != at(2).Fg(); colors != (noColor == "") {
			t.Errorf("NO_COLOR=%s: colours: %v", noColor, colors)
		}
		if at(0).Attr() != vt.Bold || at(1).Attr() != vt.Plain {
			t.Errorf("NO_COLOR=%s: the styles are %v and %v", noColor, at(0).Attr(), at(1).Attr())
		}
	}
}
