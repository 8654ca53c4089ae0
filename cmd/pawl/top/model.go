package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/screen"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/internal/overview"
)

// A model is the state of `pawl top`, which keys change and the screen shows. It does no
// input or output and reads no clock: press returns the actions for liveView.
type model struct {
	readOnly bool   // no lease can be broken
	backend  string // as errors name it
	delay    time.Duration
	now      time.Time // the time that the screen shows
	size     struct{ width, height int }

	view         *overview.View // nil before there is a client
	noClientText string         // why there is no client
	sort         overview.Sort
	reversed     bool
	filter       string
	rows         []*overview.Row // the rows of the view that pass the filter, in order

	cursor     cursor
	openName   string // the name whose page is open, or ""
	nameCursor cursor // among its holders and waiters

	typingFilter bool
	oldFilter    string // the filter before the typing, which esc restores
	question     *question
	help         bool
	notice       notice
}

// A notice is a message about the last key.
type notice struct {
	text      string
	isProblem bool
	until     time.Time
}

// A cursor is a place in a list that scrolls.
type cursor struct {
	at, first int    // the indexes of the cursor, and of the first entry on the screen
	name      string // the entry to stay on, once a key has moved the cursor
}

// An action is an effect of a key outside of the model.
type action struct {
	quit, suspend bool
	toBreak       *question // has the lease to break
}

func newModel(delay time.Duration) *model {
	return &model{delay: delay, sort: overview.ByAttention}
}

func (m *model) setView(v *overview.View) {
	m.view = v
	m.updateRows()
}

// updateRows computes the rows again, and keeps the cursor on its entry.
func (m *model) updateRows() {
	m.rows = m.view.Page(overview.Query{Sort: m.sort, Reversed: m.reversed}).Rows
	if m.filter != "" {
		m.rows = slices.DeleteFunc(slices.Clone(m.rows), func(r *overview.Row) bool { return !matches(r, m.filter) })
	}
	if m.cursor.name != "" {
		if i := slices.IndexFunc(m.rows, func(r *overview.Row) bool { return r.Name == m.cursor.name }); i >= 0 {
			m.cursor.at = i
		}
	}
	m.cursor.at = max(0, min(m.cursor.at, len(m.rows)-1))
}

func matches(r *overview.Row, text string) bool {
	return strings.Contains(r.Name, text) || strings.Contains(words.QuoteIfNeeded(r.Name), text) ||
		slices.ContainsFunc(r.Holders, func(h pawl.Holder) bool { return strings.Contains(h.Owner.String(), text) })
}

func (m *model) selectedRow() *overview.Row {
	if m.cursor.at >= len(m.rows) {
		return nil
	}
	return m.rows[m.cursor.at]
}

// say shows a notice until a key is pressed, or for a minute.
func (m *model) say(format string, args ...any) {
	m.notice = notice{text: fmt.Sprintf(format, args...), until: m.now.Add(time.Minute)}
}

func (m *model) sayProblem(format string, args ...any) {
	m.say(format, args...)
	m.notice.isProblem = true
}

func (m *model) press(k screen.Key, pasted bool) action {
	if k == "ctrl+z" && !pasted {
		return action{suspend: true}
	}
	if k == "ctrl+c" && !pasted || k == "q" && m.view == nil {
		return action{quit: true}
	}
	if m.view == nil {
		return action{}
	}
	m.notice = notice{}
	switch {
	case m.question != nil:
		return m.answer(k, pasted)
	case m.typingFilter:
		m.typeFilter(k, pasted)
	case pasted: // ignored: no key was pressed
	case k == "q":
		return action{quit: true}
	case m.help:
		m.help = false
	case k == "?", k == "h":
		m.help = true
	case k == "b" && m.readOnly:
		m.sayProblem("pawl top breaks leases only with --allow-break")
	case m.openName != "":
		m.pressName(k)
	default:
		m.pressList(k)
	}
	return action{}
}

func (m *model) pressList(k screen.Key) {
	switch k {
	case "/":
		m.typingFilter, m.oldFilter = true, m.filter
	case "esc":
		m.filter = ""
		m.updateRows()
	case "s":
		i := slices.Index(overview.Sorts, m.sort)
		m.sort = overview.Sorts[(i+1)%len(overview.Sorts)]
		m.updateRows()
	case "r", "S":
		m.reversed = !m.reversed
		m.updateRows()
	case "enter", "right":
		if r := m.selectedRow(); r != nil {
			m.openName, m.nameCursor = r.Name, cursor{}
		}
	case "b":
		if r := m.selectedRow(); r != nil {
			m.askToBreak(r)
		}
	default:
		if m.cursor.move(k, len(m.rows), m.pageRows()) {
			m.cursor.name = ""
			if r := m.selectedRow(); r != nil {
				m.cursor.name = r.Name
			}
		}
	}
}

func (m *model) pressName(k screen.Key) {
	r := m.view.Row(m.openName)
	switch k {
	case "esc", "left", "backspace":
		m.openName = ""
	case "b":
		switch {
		case r == nil || len(r.Holders) == 0:
			m.sayProblem("nobody holds %s", words.QuoteIfNeeded(m.openName))
		case m.nameCursor.at < len(r.Holders):
			m.askAboutLease(r, m.nameCursor.at)
		default:
			m.sayProblem("a waiter has nothing that could be broken; choose a holder")
		}
	default:
		if r != nil {
			m.nameCursor.move(k, len(r.Holders)+len(r.Waiters), m.pageRows())
		}
	}
}

func (m *model) pageRows() int { return max(1, m.size.height-5) }

// move moves a cursor in a list of n, and reports whether the key moves a cursor.
func (c *cursor) move(k screen.Key, n, page int) bool {
	switch k {
	case "up", "k":
		c.at--
	case "down", "j":
		c.at++
	case "pgup", "ctrl+b":
		c.at -= page
	case "pgdown", "ctrl+f", " ":
		c.at += page
	case "home", "g":
		c.at = 0
	case "end", "G":
		c.at = n - 1
	default:
		return false
	}
	c.at = max(0, min(c.at, n-1))
	return true
}

// window returns the range of the n entries around the cursor that fits into the lines.
func (c *cursor) window(n, lines int) (from, to int) {
	c.at = max(0, min(c.at, n-1))
	c.first = max(0, min(c.first, n-lines, c.at))
	if c.at >= c.first+lines {
		c.first = c.at - lines + 1
	}
	return c.first, min(n, c.first+lines)
}

// typeFilter handles a key while the filter is typed. The filter applies at once.
func (m *model) typeFilter(k screen.Key, pasted bool) {
	switch {
	case pasted && k == "enter":
	case k == "enter":
		m.typingFilter = false
	case k == "esc":
		m.typingFilter, m.filter = false, m.oldFilter
	default:
		m.filter = edit(m.filter, k)
	}
	m.updateRows()
}

// maxInputSize bounds what a user types, in bytes. It is longer than any name.
const maxInputSize = 1024

func edit(text string, k screen.Key) string {
	r, isRune := k.Rune()
	switch {
	case k == "backspace" && text != "":
		runes := []rune(text)
		return string(runes[:len(runes)-1])
	case k == "ctrl+u":
		return ""
	case isRune && len(text) < maxInputSize:
		return text + string(r)
	}
	return text
}
