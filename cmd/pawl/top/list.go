package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/screen"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/internal/overview"
)

// A column is a column of the list of names.
type column struct {
	head     string
	cells    int // its width; 0 for the columns that share the rest
	minWidth int // of a screen that shows it
	text     cellFunc
}

// A cellFunc returns the text of a column for a row.
type cellFunc func(m *model, r *overview.Row) (string, screen.Style)

var columns = []column{
	{"NAME", 0, 0, func(m *model, r *overview.Row) (string, screen.Style) { return words.QuoteIfNeeded(r.Name), 0 }},
	{"HOLDER", 0, 48, (*model).holderCell},
	{"KIND", 9, 70, ifHeld("-", (*model).kindCell)},
	{"FENCE", 16, 100, ifHeld("-", func(_ *model, r *overview.Row) (string, screen.Style) {
		return strconv.FormatUint(r.Holders[0].Fence, 10), 0
	})},
	{"HELD", 6, 30, ifHeld("-", func(m *model, r *overview.Row) (string, screen.Style) { return ago(m.view.Held(r, m.now)), 0 })},
	{"LEFT", 8, 0, ifHeld("-", (*model).leftCell)},
	{"", 12, 120, ifHeld("", (*model).barCell)},
	{"WAITING", 12, 60, (*model).waitingCell},
}

// ifHeld returns a column's text, or the text none for a name without holders.
func ifHeld(none string, text cellFunc) cellFunc {
	return func(m *model, r *overview.Row) (string, screen.Style) {
		if len(r.Holders) == 0 {
			return none, 0
		}
		return text(m, r)
	}
}

const gap = 2 // cells between columns

func (m *model) drawList() []screen.Line {
	top := []screen.Line{m.title()}
	if m.size.height >= 8 {
		top = append(top, m.summary(), m.sortLine())
	}
	top = append(top, m.alerts()...)
	keys := []string{"?", "help", "/", "filter", "s", "sort", "enter", "queue", "b", "break", "q", "quit"}
	if m.readOnly {
		keys = slices.Delete(keys, 8, 10)
	}
	bottom := keysLine(keys...)
	if m.typingFilter {
		bottom = inputLine("/", m.filter, m.size.width)
	}
	used, widths := m.chooseColumns()
	var head strings.Builder
	for i, c := range used {
		name := c.head
		if i == 0 {
			name = " " + name
		}
		head.WriteString(screen.Pad(name, widths[i]) + strings.Repeat(" ", gap))
	}
	top = append(top, screen.Text(head.String(), screen.Bold))
	from, to := m.cursor.window(len(m.rows), max(1, m.size.height-len(top)-1))
	for i := from; i < to; i++ {
		var style screen.Style
		if i == m.cursor.at {
			style = screen.Reverse
		}
		top = append(top, m.listLine(m.rows[i], used, widths, style))
	}
	if len(m.rows) == 0 && !m.view.ScannedAt.IsZero() {
		nothing := "nothing is held or waited for"
		if m.filter != "" && len(m.view.Rows) > 0 {
			nothing = "no name or holder has " + words.QuoteIfNeeded(m.filter) + " in it; esc shows all"
		}
		top = append(top, screen.Text(nothing, screen.Dim))
	}
	return m.layOut(top, []screen.Line{bottom})
}

// shownNames returns the names on the screen, whose changes the backend should push.
func (m *model) shownNames() []string {
	if m.openName != "" {
		return []string{m.openName}
	}
	var names []string
	for i := m.cursor.first; i < min(len(m.rows), m.cursor.first+m.size.height); i++ {
		names = append(names, m.rows[i].Name)
	}
	return names
}

// chooseColumns chooses the columns that fit on the screen, and their widths.
func (m *model) chooseColumns() (used []column, widths []int) {
	left, flexible := m.size.width, 0
	for _, c := range columns {
		if m.size.width >= c.minWidth {
			used = append(used, c)
			if left -= c.cells + gap; c.cells == 0 {
				flexible++
			}
		}
	}
	left += gap // no gap behind the last
	for _, c := range used {
		w := c.cells
		if w == 0 {
			w = max(1, (left+flexible-1)/flexible) // the first of these columns may get one cell more
			left -= w
			flexible--
		}
		widths = append(widths, w)
	}
	return used, widths
}

func (m *model) listLine(r *overview.Row, used []column, widths []int, style screen.Style) screen.Line {
	mark := " "
	if style != 0 {
		mark = ">"
	}
	line := screen.Line{}
	for i, c := range used {
		text, cellStyle := c.text(m, r)
		cells := widths[i]
		if i == 0 {
			text = mark + text
		}
		line = append(line, screen.Span{Text: screen.Pad(text, cells), Style: style | cellStyle}, screen.Span{Text: strings.Repeat(" ", gap), Style: style})
	}
	return line
}

func (m *model) holderCell(r *overview.Row) (string, screen.Style) {
	switch n := len(r.Holders); {
	case n == 1:
		return words.Holder(r.Holders[0]), 0
	case n > 1:
		return fmt.Sprintf("%s and %d more", words.Holder(r.Holders[0]), n-1), 0
	case r.Closed(m.now) > 0:
		return "closed for " + ago(r.Closed(m.now)), screen.Yellow
	}
	return "nobody", screen.Dim
}

func (m *model) kindCell(r *overview.Row) (string, screen.Style) {
	words := overview.KindWords(r.Holders[0].Permits, r.Holders[0].Limit)
	for _, h := range r.Holders[1:] {
		if overview.KindWords(h.Permits, h.Limit) != words {
			return "mixed", 0
		}
	}
	return words, 0
}

// leastLeft returns the index of the holder with the least time left. The name is held.
func (m *model) leastLeft(r *overview.Row) (i int) {
	for j := range r.Holders {
		if r.Left(j, m.now) < r.Left(i, m.now) {
			i = j
		}
	}
	return i
}

func (m *model) leftCell(r *overview.Row) (string, screen.Style) {
	return leftWords(r.Left(m.leastLeft(r), m.now), r.AnyOverdue())
}

// leftWords returns the time left, in red and with a mark if the lease was not renewed in
// time.
func leftWords(left time.Duration, overdue bool) (string, screen.Style) {
	if overdue {
		return ago(left) + " !", screen.Red
	}
	return ago(left), 0
}

// barCell shows how much of the time of the lease is left.
func (m *model) barCell(r *overview.Row) (string, screen.Style) {
	const cells = 10
	i, full := m.leastLeft(r), 0
	if ttl := r.TTLs[i]; ttl > 0 {
		full = min(cells, int((r.Left(i, m.now)*cells+ttl-1)/ttl))
	}
	style := screen.Green
	if r.AnyOverdue() {
		style = screen.Red
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", cells-full) + "]", style
}

func (m *model) waitingCell(r *overview.Row) (string, screen.Style) {
	if len(r.Waiters) == 0 {
		return "-", 0
	}
	return fmt.Sprintf("%d, %s", len(r.Waiters), ago(m.view.Waits(r, m.now))), screen.Yellow
}
