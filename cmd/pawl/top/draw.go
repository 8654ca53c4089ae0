package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/screen"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/internal/overview"
)

// draw returns the whole screen. It depends only on the model and its arguments.
func (m *model) draw(width, height int, now time.Time) []screen.Line {
	m.size.width, m.size.height, m.now = width, height, now
	switch {
	case m.view == nil:
		return m.layOut(append([]screen.Line{m.title(), {}}, m.wrapText(m.noClientText, 0)...), []screen.Line{keysLine("q", "quit")})
	case m.help:
		return m.layOut(topHelp(m.delay), []screen.Line{keysLine("any key", "back")})
	case m.question != nil:
		return m.drawQuestion()
	case m.openName != "":
		return m.drawName()
	}
	return m.drawList()
}

// layOut puts lines at the top and others at the bottom of the screen. If they do not all
// fit, it cuts the top lines first.
func (m *model) layOut(top, bottom []screen.Line) []screen.Line {
	bottom = bottom[max(0, len(bottom)-m.size.height):]
	room := m.size.height - len(bottom)
	lines := make([]screen.Line, room, m.size.height)
	copy(lines, top)
	return append(lines, bottom...)
}

// title returns the first line: the backend, and the time.
func (m *model) title() screen.Line {
	left := "pawl top  " + m.backend
	clock := m.now.Format(time.TimeOnly)
	room := m.size.width - len(clock) - 1
	if room < 20 {
		return screen.Text(left, screen.Bold)
	}
	return screen.Line{{Text: screen.Pad(left, room) + " ", Style: screen.Bold}, {Text: clock}}
}

// summary counts the names, and shows how the counts are kept up to date.
func (m *model) summary() screen.Line {
	if m.view.ScannedAt.IsZero() {
		return screen.Text("looking ...", screen.Dim)
	}
	c := m.view.Counts()
	text := fmt.Sprintf("%d names, %d leases, %d waiting", c.Names, c.Held, c.Waiters)
	if c.Closed > 0 {
		text += fmt.Sprintf(", %d closed", c.Closed)
	}
	line := screen.Text(text, 0)
	if c.Overdue > 0 {
		line = append(line, screen.Span{Text: fmt.Sprintf(", %d overdue", c.Overdue), Style: screen.Red})
	}
	method := "; asked every " + words.Rounded(m.view.Pace).String()
	if m.view.Push {
		method = "; changes are pushed"
	}
	return append(line, screen.Span{Text: method, Style: screen.Dim})
}

// sortLine shows how the list is sorted and filtered.
func (m *model) sortLine() screen.Line {
	by := map[overview.Sort]string{
		overview.ByAttention: "overdue and longest wait first", overview.ByName: "by name", overview.ByHeld: "held longest first",
		overview.ByLeft: "least time left first", overview.ByWaiters: "most waiters first",
	}
	text := "sorted: " + by[m.sort]
	if m.reversed {
		text += ", reversed"
	}
	if m.filter != "" {
		text += fmt.Sprintf("; %d of %d have %s in them", len(m.rows), len(m.view.Rows), words.QuoteIfNeeded(m.filter))
	}
	return screen.Text(text, screen.Dim)
}

// scanAlertDelay is the delay of a scan after which the screen shows an alert.
const scanAlertDelay = 2 * time.Second

// alerts returns the warnings to show, the most important first.
func (m *model) alerts() (lines []screen.Line) {
	v := m.view
	alert := func(text string, style screen.Style) { lines = append(lines, m.wrapText(text, style)...) }
	if m.notice.text != "" && m.now.Before(m.notice.until) {
		style := screen.Bold
		if m.notice.isProblem {
			style |= screen.Red
		}
		alert(m.notice.text, style)
	}
	bad := screen.Bold | screen.Red
	switch seen := v.ScannedAt; {
	case v.Unsupported():
		alert(words.ErrorText(v.Err), bad)
	case v.Err != nil && seen.IsZero():
		alert("the backend has not answered yet: "+words.ErrorText(v.Err), bad)
	case v.Err != nil:
		alert(m.silenceText(seen)+": "+words.ErrorText(v.Err), bad)
	case !seen.IsZero() && m.now.Sub(seen) > v.Pace+scanAlertDelay:
		alert(m.silenceText(seen), bad)
	}
	for _, deadlock := range v.Blocks().Deadlocks {
		var waits []string
		for _, b := range deadlock {
			waits = append(waits, fmt.Sprintf("%s waits for %s, which %s holds", b.Waiter, words.QuoteIfNeeded(b.Name), b.Holder))
		}
		alert("deadlock: "+strings.Join(waits, "; "), bad)
	}
	if n := len(v.Damaged); n > 0 {
		alert(fmt.Sprintf("damaged rows: %d; the first: %s", n, words.ErrorText(v.Damaged[0].Err)), bad)
	}
	if v.More {
		alert("there are more names than are shown; give a PREFIX", bad)
	}
	maxLines := 1
	if m.size.height >= 16 {
		maxLines = 3
	}
	return lines[:min(len(lines), maxLines)]
}

// wrapText wraps a text into lines.
func (m *model) wrapText(text string, style screen.Style) (lines []screen.Line) {
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		switch longer := line + " " + word; {
		case line == "":
			line = word
		case screen.Width(longer) <= m.size.width:
			line = longer
		default:
			lines = append(lines, screen.Text(line, style))
			line = word
		}
	}
	return append(lines, screen.Text(line, style))
}

func (m *model) silenceText(seen time.Time) string {
	return fmt.Sprintf("the backend has not answered since %s (%s)", seen.Format(time.TimeOnly), ago(m.now.Sub(seen)))
}

// keysLine returns the last line: the keys, and what they do.
func keysLine(pairs ...string) (line screen.Line) {
	for i := 0; i+1 < len(pairs); i += 2 {
		line = append(line, screen.Span{Text: pairs[i], Style: screen.Reverse}, screen.Span{Text: " " + pairs[i+1] + "  "})
	}
	return line
}

// inputLine returns an input line with a cursor. It always shows the end of the text.
func inputLine(begin, text string, width int) screen.Line {
	room := max(1, width-screen.Width(begin)-1)
	shown := screen.Clean(text)
	for screen.Width(shown) > room {
		shown = strings.TrimPrefix(shown, string([]rune(shown)[:1]))
	}
	return screen.Line{{Text: begin, Style: screen.Bold}, {Text: shown}, {Text: " ", Style: screen.Reverse}}
}

// ago formats a duration in at most six cells.
func ago(d time.Duration) string {
	s := int64(d / time.Second)
	switch {
	case s < 100:
		return fmt.Sprintf("%ds", s)
	case s < 100*60:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 100*3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	case s < 100*86400:
		return fmt.Sprintf("%dd%02dh", s/86400, s/3600%24)
	}
	return fmt.Sprintf("%dd", min(s/86400, 99_999))
}

func topHelp(delay time.Duration) []screen.Line {
	text := `Keys of pawl top

  up down pgup pgdown home end   move
  enter    who holds the name, and who waits for it; esc goes back
  /        filter: show the names with a text in them, or in a holder
  s        next sort order           r  reverse the order
  b        break a lease: it asks, and then the name stays closed for %v
  ctrl+z   suspend                   q  quit

LEFT is how long the lease lasts if it is not renewed. A ! behind it says that
it was not renewed in time: its holder is stuck or gone, or does not renew.
WAITING is the number of waiters, and how long the first has waited.
Times are by the clock of the backend.`
	closed := "its TTL"
	if delay != 0 {
		closed = max(0, delay).String()
	}
	var lines []screen.Line
	for line := range strings.SplitSeq(fmt.Sprintf(text, closed), "\n") {
		lines = append(lines, screen.Text(line, 0))
	}
	lines[0][0].Style = screen.Bold
	return lines
}
