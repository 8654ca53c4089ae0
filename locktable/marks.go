package locktable

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A Mark says that a client watches the name, and until when. A step that people can see
// leaves a signal for each of them, which goes the way of all signals. So a name without
// marks costs nobody anything; and as they stand in the entry, no step can miss one.
type Mark struct {
	Token driver.Token // which of its watches it is
	Inbox string       // of the client
	Until Instant
}

// maxMarks is how many may watch a name and be told. A client for whom there is no room
// asks.
const maxMarks = 64

// signalChanged is for the client whose mark has that token. It reaches no listener.
const signalChanged = driver.SignalLost + 1

// IsChange reports whether a signal is for who watches, and not for a claim or a lease: a
// table may have to tell them apart, see [Driver.Deliver].
func IsChange(s driver.Signal) bool { return s.Kind == signalChanged }

// Mark has a client told of changes for so long, in which it is to come again. known says
// that it was told until now; ok, that there was room.
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

// tell has the head of the queue look, if it has to, and leaves a signal for everybody
// who watches, if there is news. Every method ends with it.
func (e *Entry) tell() {
	if e.sooner && e.OpensAt() != 0 {
		e.tellHead()
	}
	e.sooner = false
	if !e.News {
		return
	}
	for _, m := range e.Marks {
		e.signal(m.Inbox, driver.Signal{Kind: signalChanged, Token: m.Token})
	}
}

// hush takes back what tell has left, where the same transaction has told of it before:
// who is told looks when all of it is there.
func (e *Entry) hush() {
	e.News = false
	e.Signals = slices.DeleteFunc(e.Signals, func(s Signal) bool { return IsChange(s.Signal) })
}

// unmark drops the marks that are over. That is no change: they go when something else is
// stored.
func (e *Entry) unmark(now Instant) {
	e.Marks = slices.DeleteFunc(e.Marks, func(m Mark) bool { return m.Until <= now })
}

// Hearing is a table whose signals come in by themselves. The driver over it needs no
// more to tell of changes: whoever watches a name marks its entry, see [Mark].
type Hearing interface {
	// Hear has signals come in until stop is called, also while this client neither holds
	// nor waits. It calls f each time that they begin to, for what was sent before may be
	// lost, and with false each time that they no longer do. It does not block.
	Hear(f func(hears bool)) (stop func())
}

// markFor is how long a mark lasts, unless it is renewed.
const markFor = time.Minute

// mark marks names for this client, in steps that are together where the table has them.
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
