package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/screen"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/internal/overview"
)

// drawName draws one name: its holders, its waiters in the order in which they will be
// served, and who blocks whom.
func (m *model) drawName() []screen.Line {
	r := m.view.Row(m.openName) // nil if the name is not in use
	top := []screen.Line{m.title(), m.nameState(r)}
	top = append(top, m.alerts()...)
	all := []string{"esc", "back", "up/down", "choose", "b", "break", "?", "help", "q", "quit"}
	if m.readOnly {
		all = slices.Delete(all, 4, 6)
	}
	keys := keysLine(all...)
	if r == nil {
		return m.layOut(top, []screen.Line{keys})
	}
	if m.size.height >= 12 {
		top = append(top, m.nameBlocks()...)
		if r.Value != nil {
			top = append(top, screen.Text(fmt.Sprintf("value: %q", r.Value), 0))
		}
	}
	head := fmt.Sprintf(" %-5s  %-9s  %-8s  %-8s  %-16s  %s", "PLACE", "KIND", "SINCE", "LEFT", "FENCE", "WHO")
	top = append(top, screen.Text(head, screen.Bold))
	from, to := m.nameCursor.window(len(r.Holders)+len(r.Waiters), max(1, m.size.height-len(top)-1))
	for i := from; i < to; i++ {
		top = append(top, m.nameLine(r, i))
	}
	return m.layOut(top, []screen.Line{keys})
}

func (m *model) nameState(r *overview.Row) screen.Line {
	line := screen.Text(screen.Cut(words.QuoteIfNeeded(m.openName), max(10, m.size.width/2)), screen.Bold)
	state := " is free"
	switch {
	case r == nil && slices.ContainsFunc(m.view.Damaged, func(d overview.Damage) bool { return d.Name == m.openName }):
		state = " cannot be read"
	case r == nil:
	case len(r.Holders) == 1:
		state = " is held"
	case len(r.Holders) > 1:
		state = fmt.Sprintf(" is held by %d", len(r.Holders))
	case r.Closed(m.now) > 0:
		state = " is closed for another " + ago(r.Closed(m.now))
	case len(r.Waiters) > 0:
		state = " is held by nobody"
	}
	if r != nil {
		if n := len(r.Waiters); n > 0 {
			state += fmt.Sprintf("; %d waiting", n)
		}
		if differ := words.DifferentLimits(&r.Entry); differ != "" {
			state += "; their limits differ: " + differ
		}
	}
	return append(line, screen.Span{Text: state})
}

// nameBlocks shows processes that wait for a name while they hold another, if one of the
// two is this name. The alerts show deadlocks.
func (m *model) nameBlocks() (lines []screen.Line) {
	for _, b := range m.view.Blocks().Of(m.openName) {
		if len(lines) == 3 {
			break
		}
		var holds []string
		for _, name := range b.Holds[:min(len(b.Holds), 3)] {
			holds = append(holds, words.QuoteIfNeeded(name))
		}
		if more := len(b.Holds) - len(holds); more > 0 {
			holds = append(holds, fmt.Sprintf("%d more", more))
		}
		lines = append(lines, screen.Text(fmt.Sprintf("%s holds %s and waits for %s, which %s holds",
			b.Waiter, strings.Join(holds, ", "), words.QuoteIfNeeded(b.Name), b.Holder), screen.Yellow))
	}
	return lines
}

func (m *model) nameLine(r *overview.Row, i int) screen.Line {
	mark, style := " ", screen.Style(0)
	if i == m.nameCursor.at {
		mark, style = ">", screen.Reverse
	}
	if i < len(r.Holders) {
		h := &r.Holders[i]
		left, leftStyle := leftWords(r.Left(i, m.now), r.Overdue(i))
		return screen.Line{
			{Text: fmt.Sprintf("%s%-5s  %-9s  %-8s  ", mark, "holds", screen.Cut(overview.KindWords(h.Permits, h.Limit), 9), ago(m.view.Since(h.Since, m.now))), Style: style},
			{Text: fmt.Sprintf("%-8s  ", left), Style: style | leftStyle},
			{Text: screen.Pad(strconv.FormatUint(h.Fence, 10), 16) + "  " + words.Holder(*h), Style: style},
		}
	}
	w := &r.Waiters[i-len(r.Holders)]
	left := max(0, w.ExpiresIn-m.now.Sub(r.At))
	return screen.Text(fmt.Sprintf("%s%-5d  %-9s  %-8s  %-8s  %-16s  %s", mark, i-len(r.Holders)+1,
		screen.Cut(overview.KindWords(w.Permits, w.Limit), 9), ago(m.view.Since(w.Since, m.now)), ago(left), "", w.Owner), style)
}
