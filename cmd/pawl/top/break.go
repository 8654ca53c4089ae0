package top

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/screen"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/internal/overview"
	"github.com/pawl-go/pawl/internal/trust"
)

// A question asks whether to break a lease. It has the fence that was shown, so that the
// answer cannot break the lease of a later holder.
type question struct {
	name string
	pawl.Holder
	delay       time.Duration // of pawl.BreakOptions: 0 if it is not known
	input       string
	wrongAnswer bool // the last answer was not the name or the fence
}

// askToBreak asks about the only lease of a row. If there are several, the user has to
// choose one first.
func (m *model) askToBreak(r *overview.Row) {
	switch len(r.Holders) {
	case 0:
		m.sayProblem("nobody holds %s", words.QuoteIfNeeded(r.Name))
	case 1:
		m.askAboutLease(r, 0)
	default:
		m.openName, m.nameCursor = r.Name, cursor{}
		m.say("%d leases: choose one, then b", len(r.Holders))
	}
}

func (m *model) askAboutLease(r *overview.Row, holder int) {
	h := r.Holders[holder]
	m.question = &question{name: r.Name, Holder: h, delay: cmp.Or(m.delay, trust.BreakDelay(r.Holders, h.Fence))}
}

// answer handles a key while the question is open. A pasted line end does not answer the
// question: the user has to press enter.
func (m *model) answer(k screen.Key, pasted bool) action {
	q := m.question
	switch {
	case k == "esc" && !pasted:
		m.question = nil
		m.say("nothing was broken")
	case k == "enter" && pasted:
	case k == "enter" && q.accepts(q.input):
		m.question = nil
		m.say("breaking %s (fence %d) ...", words.QuoteIfNeeded(q.name), q.Fence)
		return action{toBreak: q}
	case k == "enter":
		q.wrongAnswer = true
	default:
		q.input, q.wrongAnswer = edit(q.input, k), false
	}
	return action{}
}

// accepts reports whether input is the fence or the name, raw or as it is shown.
func (q *question) accepts(input string) bool {
	input = strings.TrimSpace(input)
	switch input {
	case "":
		return false
	case strings.TrimSpace(q.name), words.QuoteIfNeeded(q.name), screen.Clean(q.name), screen.Clean(words.QuoteIfNeeded(q.name)), strconv.FormatUint(q.Fence, 10):
		return true
	}
	return false
}

// showBreakResult shows the result of an attempt to break a lease.
func (m *model) showBreakResult(q *question, err error) {
	switch {
	case err == nil && q.delay > 0:
		m.say("broke %s, held by %s (fence %d); closed for %v", words.QuoteIfNeeded(q.name), q.Owner, q.Fence, q.delay)
	case err == nil:
		m.say("broke %s, held by %s (fence %d)", words.QuoteIfNeeded(q.name), q.Owner, q.Fence)
	case errors.Is(err, pawl.ErrNoSuchLease), errors.Is(err, pawl.ErrInvalid), errors.Is(err, errors.ErrUnsupported):
		m.sayProblem("nothing was broken: %s", words.ErrorText(err))
	default: // the answer may have been lost
		m.sayProblem("it is not known whether %s was broken: %s", words.QuoteIfNeeded(q.name), words.ErrorText(err))
	}
}

// drawQuestion draws the question. Its last lines are the most important ones, because
// the smallest screen shows only those.
func (m *model) drawQuestion() []screen.Line {
	q := m.question
	effect := "Pawl notifies its holder. The name can be locked again at once."
	switch {
	case q.Released:
		effect = "It was released, and is kept for its minimum hold."
	case q.delay > 0:
		effect = "Pawl notifies its holder. The name stays closed for " + q.delay.String() + "."
	}
	lines := []screen.Line{
		{{Text: "Break ", Style: screen.Bold}, {Text: words.QuoteIfNeeded(q.name), Style: screen.Bold | screen.Yellow}, {Text: "?", Style: screen.Bold}},
		screen.Text("fence    "+strconv.FormatUint(q.Fence, 10), 0),
		screen.Text("holder   "+q.Owner.String(), 0),
		screen.Text("held for "+ago(m.view.Since(q.Since, m.now)), 0),
		{},
		screen.Text(effect, 0),
		screen.Text("Pawl cannot notify a holder that is paused or cut off. Only a check of the", 0),
		screen.Text("fence refuses what it writes later.", 0),
	}
	r := m.view.Row(q.name)
	prompt := screen.Text("Type the name or the fence to break it:", screen.Bold)
	switch {
	case r == nil || !slices.ContainsFunc(r.Holders, func(h pawl.Holder) bool { return h.Fence == q.Fence }):
		prompt = screen.Text("This lease is over: there is nothing to break any more.", screen.Bold|screen.Yellow)
	case q.wrongAnswer:
		prompt = screen.Text("That is not its name: type the name or the fence.", screen.Bold|screen.Red)
	}
	return m.layOut(lines, []screen.Line{prompt, inputLine("", q.input, m.size.width), keysLine("enter", "break", "esc", "do nothing")})
}
