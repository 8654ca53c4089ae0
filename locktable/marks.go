package locktable

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A Mark says that a client watches the name, and until when. A step with a visible
// change leaves a signal for each mark, which is sent like all signals. So watching costs
// nothing on a name without marks. And since the marks are in the entry, no step can miss
// one.
type Mark struct {
	Token driver.Token // which of the client's watches it is
	Inbox string       // the inbox of the client
	Until Instant
}

// maxMarks is the number of clients that may watch a name by signals. A client for which
// there is no room polls.
const maxMarks = 64

// signalChanged is for the client whose mark has the signal's token. It reaches no
// listener.
const signalChanged = driver.SignalLost + 1

// IsChange reports whether a signal is for a watch, and not for a claim or a lease. A
// table may have to tell them apart, see [Driver.Deliver].
func IsChange(s driver.Signal) bool { return s.Kind == signalChanged }

// Mark makes the entry signal changes to a client, for the time d from now. A repeat
// extends that time. known means that the mark was still there, so the client has missed
// nothing. ok means that there was room.
func (e *Entry) Mark(now Instant, m Mark, d time.Duration) (known, ok bool) {
	e.settle(now)
	defer e.tell()
	m.Until = e.until(now, d)
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

// Hearing is a table that can receive signals at any time. Then watching needs nothing
// more: a client that watches a name marks its entry, see [Mark].
type Hearing interface {
	// Hear makes signals come in until stop is called, even while this client neither
	// holds nor waits. It calls f(true) each time that they begin to come in, because
	// earlier ones may be lost, and f(false) each time that they stop. It does not block.
	Hear(f func(hears bool)) (stop func())
}

// markFor is the time for which a mark lasts, unless it is renewed.
const markFor = time.Minute

// mark marks names for this client. The table may take the steps together.
func (d *Driver) mark(ctx context.Context, tokens []driver.Token, names []string) (known, ok []bool, err error) {
	steps := make([]Step, len(names))
	for i, name := range names {
		steps[i].Name = name
	}
	known, ok = make([]bool, len(names)), make([]bool, len(names))
	err = d.table.Update(ctx, steps, func(i int, e *Entry, now Instant) {
		known[i], ok[i] = e.Mark(now, Mark{Token: tokens[i], Inbox: d.inbox}, markFor)
	})
	return known, ok, err
}
