package locktable

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A Mark records that a client watches the name, and until when. A step with a visible
// change adds a signal for each mark. So watching costs nothing on a name without marks,
// and no step can miss a mark, because marks are stored in the entry.
type Mark struct {
	Token driver.Token // identifies one of the client's watches
	Inbox string       // the inbox of the client
	Until Instant
}

// maxMarks is the number of clients that may watch a name by signals. Further clients
// poll.
const maxMarks = 64

// signalChanged notifies the client whose mark has the signal's token. Deliver passes it
// to the watch, and not to the listeners.
const signalChanged = driver.SignalLost + 1

// Mark adds a mark, or extends it: for the time d from now, its client gets a signal for
// each visible change. known means that the mark was still there, so the client has
// missed no change. ok is false if the entry has maxMarks other marks.
func (e *Entry) Mark(now Instant, m Mark, d time.Duration) (known, ok bool) {
	e.settle(now)
	defer e.signalChange()
	m.Until = e.expiryAfter(now, d)
	i := slices.IndexFunc(e.Marks, func(x Mark) bool { return x.Token == m.Token })
	switch {
	case i >= 0:
		e.Marks[i] = m
	case len(e.Marks) >= maxMarks:
		return false, false
	default:
		e.Marks = append(e.Marks, m)
	}
	e.Changed = true
	return i >= 0, true
}

// Pushing is a table that can receive signals at any time. A client of such a table
// watches a name with a [Mark] in its entry.
type Pushing interface {
	// Subscribe makes the table receive signals until stop is called, even while this
	// client neither holds nor waits. It calls f(true) each time that it begins to
	// receive, because earlier signals may be lost, and f(false) each time that it stops.
	// It does not block.
	Subscribe(f func(up bool)) (stop func())
}

// markTTL is the time for which a mark lasts, unless it is renewed.
const markTTL = time.Minute

// mark adds or extends the marks of this client on names.
func (d *Driver) mark(ctx context.Context, tokens []driver.Token, names []string) (known, ok []bool, err error) {
	steps := make([]Step, len(names))
	for i, name := range names {
		steps[i].Name = name
	}
	known, ok = make([]bool, len(names)), make([]bool, len(names))
	err = d.table.Update(ctx, steps, func(i int, e *Entry, now Instant) {
		known[i], ok[i] = e.Mark(now, Mark{Token: tokens[i], Inbox: d.inbox}, markTTL)
	})
	return known, ok, err
}
