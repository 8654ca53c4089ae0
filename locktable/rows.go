package locktable

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/driver"
)

// Rows store each waiter in a row of its own, apart from the entry of its name. The rows
// are in the order of Since, and for equal Since in the order of joining. A table that
// has Rows runs its steps through [Apart]. A step then reads and writes only what it
// changes: renewing one place costs the same if a thousand others wait.
//
// The table calls the methods inside the atomic step.
type Rows interface {
	// Lapse drops the waiters of a name whose places have expired at now. It returns how
	// many are left, when the next place expires, and when the last waiter arrived, or
	// zeros if none is left.
	Lapse(name string, now Instant) (left int, next, last Instant, err error)

	// Look loads the waiters that a step needs, in one query. Lapse was called before.
	Look(name string, l Look) (Sight, error)

	// Move stores the changes that a step made to the queue of a name.
	Move(name string, m Moves) error
}

// A Look says which part of a queue a step needs.
type Look struct {
	First int          // the number of waiters to load from the head
	Token driver.Token // the claim whose place to find; zero means none
	Rank  bool         // count the waiters ahead of Token's place, too
	Early bool         // if Token has no place: count the waiters that arrived no later than Came
	Came  Instant
}

// A Sight is the part of a queue that a Look asked for.
type Sight struct {
	First []Waiter
	Own   *Waiter // nil if the token has no place
	Ahead int
}

// Moves are the changes that a step made to a queue.
type Moves struct {
	Joined []Waiter // one at most, unless a whole queue moves into the rows
	Kept   []Waiter // one at most: its Expires, TTL, Fences, Value or Above has changed
	Left   []Waiter // granted, withdrawn, or moved into the entry
}

// A short queue is stored in the entry, as in a table without rows. For a few waiters,
// one value costs half as much as rows with their indexes. At 16 waiters both cost the
// same.
var rowBounds = bounds{long: 8, short: 2}

// bounds say where a queue is stored: a queue of more than long waiters moves into rows,
// and a queue that has shrunk to short waiters moves back.
type bounds struct{ long, short int }

// Apart runs f on the entry of a step, and stores the waiters in rows if they are many. f
// must remove the expired places, or return an error, which Apart returns. stored is the
// entry without the waiters in rows, or empty if there is no entry.
//
// Apart stores the changes in the rows, and returns the entry without those waiters. The
// caller stores the entry if it is Changed and its stored form differs: it may be equal,
// because renewing a place in a row changes only the row. Moves are all changes that the
// step made to the queue, in rows or not, except expired places.
func Apart(rows Rows, s Step, stored []byte, now Instant, f func(e *Entry) error) (*Entry, Moves, error) {
	return rowBounds.apart(rows, s, stored, now, f)
}

func (b bounds) apart(rows Rows, s Step, stored []byte, now Instant, f func(e *Entry) error) (*Entry, Moves, error) {
	e, err := decode(stored)
	switch {
	case err != nil:
		return nil, Moves{}, err
	case e.Rest.Len == 0:
		return b.runInEntry(rows, s, e, now, f)
	}
	waiting := e.Rest.Len
	line, lapsed, err := lapse(rows, s.Name, e.Rest, now)
	if err != nil {
		return nil, Moves{}, err
	}
	e, seen, err := run(rows, s, e, stored, line, line.Len < waiting, now, f)
	if _, corrupt := errors.AsType[*CorruptError](err); corrupt {
		// An operator may have deleted rows of waiters. Count the rows that are left.
		if line, lapsed, err = lapse(rows, s.Name, Rest{}, now); err == nil {
			e, err = decode(stored)
		}
		if err == nil {
			e, seen, err = run(rows, s, e, stored, line, line.Len < waiting, now, f)
		}
	}
	if err != nil {
		return nil, Moves{}, err
	}
	m := movesOf(seen, e, s.Token)
	if len(m.Joined)+len(m.Kept)+len(m.Left) > 0 {
		if err := rows.Move(s.Name, m); err != nil {
			return nil, Moves{}, err
		}
	}
	e.Queue, e.Rest, e.Changed = nil, line.after(m), e.Changed || lapsed
	if line.Len < waiting && !e.News {
		e.News = true
		e.signalChange()
	}
	if lapsed || len(m.Left) > 0 {
		err = b.moveIntoEntry(rows, s.Name, e)
	}
	return e, m, err
}

// run runs f on an entry that has the first waiters and the step's own place. If f needs
// more (Entry.Short), run loads more waiters and runs f again. It returns the entry and
// all waiters that it loaded. gone means that places have expired.
func run(rows Rows, s Step, e *Entry, stored []byte, line Rest, gone bool, now Instant, f func(e *Entry) error) (_ *Entry, seen []Waiter, err error) {
	for first := e.firstCount(now); ; first = max(1, 4*first) {
		if e.Rest = line; line.Len > 0 {
			if seen, err = e.loadQueue(rows, s, min(first, line.Len), now); err != nil {
				return nil, nil, err
			}
		}
		e.headMustAsk = gone
		if err := f(e); err != nil {
			return nil, nil, err
		}
		if !e.Short {
			return e, seen, nil
		}
		if first >= line.Len {
			return nil, nil, miscounted(line.Len, line.Len+1)
		}
		if e, err = decode(stored); err != nil {
			return nil, nil, err
		}
	}
}

// lapse removes the waiters whose places have expired.
func lapse(rows Rows, name string, line Rest, now Instant) (rest Rest, lapsed bool, err error) {
	if line.Lapses > now && now >= line.Last { // if the clock ran back, Last matters, so read it again
		return line, false, nil
	}
	left, next, last, err := rows.Lapse(name, now)
	return Rest{Len: left, Last: last, Lapses: next}, true, err
}

func (line Rest) after(m Moves) Rest {
	line.Len += len(m.Joined) - len(m.Left)
	for _, w := range m.Joined {
		if line.Len == 1 {
			line.Last, line.Lapses = w.Since, w.Expires
		}
		line.Last, line.Lapses = max(line.Last, w.Since), min(line.Lapses, w.Expires)
	}
	if line.Len == 0 {
		return Rest{}
	}
	return line
}

// runInEntry runs f on an entry that contains its queue. If the queue has become long,
// runInEntry moves it into rows.
func (b bounds) runInEntry(rows Rows, s Step, e *Entry, now Instant, f func(e *Entry) error) (*Entry, Moves, error) {
	was := slices.DeleteFunc(slices.Clone(e.Queue), func(w Waiter) bool { return w.Expires <= now })
	if err := f(e); err != nil {
		return nil, Moves{}, err
	}
	m := movesOf(was, e, s.Token)
	if len(e.Queue) <= b.long {
		return e, m, nil
	}
	// Rows that are already there belong to an entry that an operator deleted.
	if _, _, _, err := rows.Lapse(s.Name, maxInstant); err != nil {
		return nil, Moves{}, err
	}
	if err := rows.Move(s.Name, Moves{Joined: e.Queue}); err != nil {
		return nil, Moves{}, err
	}
	e.Rest = Rest{Len: len(e.Queue), Last: e.Queue[len(e.Queue)-1].Since, Lapses: maxInstant}
	for _, w := range e.Queue {
		e.Rest.Lapses = min(e.Rest.Lapses, w.Expires)
	}
	e.Queue = nil
	return e, m, nil
}

// moveIntoEntry moves a queue that has become short from its rows into the entry.
func (b bounds) moveIntoEntry(rows Rows, name string, e *Entry) error {
	n := e.Rest.Len
	if n == 0 || n > b.short {
		return nil
	}
	sight, err := rows.Look(name, Look{First: n})
	if err != nil {
		return err
	}
	e.Queue, e.Rest = sight.First, Rest{}
	return rows.Move(name, Moves{Left: sight.First})
}

// firstCount returns the number of waiters to load at first: none, if the name cannot be
// granted.
func (e *Entry) firstCount(now Instant) int {
	full := func(h Holder) bool { return h.Weight == driver.Exclusive && h.Expires > now }
	if e.Closed > now || slices.ContainsFunc(e.Holders, full) {
		return 0
	}
	return 1
}

// loadQueue loads the first waiters and the step's own place into the entry. It returns
// these waiters.
func (e *Entry) loadQueue(rows Rows, s Step, first int, now Instant) (seen []Waiter, err error) {
	l := Look{First: first}
	if h := e.holder(s.Token); !s.Token.IsZero() && (h == nil || h.Expires <= now) {
		l.Token, l.Rank, l.Came = s.Token, s.Place, e.arrivalTime(now, s.Ticket)
		l.Early = l.Rank && l.Came < e.Rest.Last
	}
	if l == (Look{}) {
		return nil, nil // usually a renewal, which does not concern the queue
	}
	sight, err := rows.Look(s.Name, l)
	if err != nil {
		return nil, err
	}
	if len(sight.First) != first {
		return nil, miscounted(e.Rest.Len, len(sight.First))
	}
	ahead := e.Rest.Len
	if sight.Own != nil || l.Early {
		ahead = sight.Ahead
	}
	seen = slices.Clone(sight.First)
	e.Queue, e.Rest.Len = sight.First, e.Rest.Len-first
	e.Rest.Ahead = max(0, ahead-first)
	own := sight.Own
	if own != nil && !slices.ContainsFunc(seen, func(w Waiter) bool { return w.Token == own.Token }) {
		seen = append(seen, *own)
		e.Rest.Own = own
	}
	if e.Rest.Own != nil && e.Rest.Len == 0 {
		return nil, miscounted(first, first+1)
	}
	for _, w := range seen {
		if w.Expires <= now {
			return nil, &CorruptError{Problem: "the row of a waiter says that its place goes on"}
		}
	}
	return seen, nil
}

// movesOf compares the waiters before the step with the waiters after it. Both are in the
// order of the queue.
func movesOf(seen []Waiter, e *Entry, own driver.Token) (m Moves) {
	now := e.Queue
	if e.Rest.Own != nil {
		now = append(now, *e.Rest.Own)
	}
	known := slices.ContainsFunc(seen, func(w Waiter) bool { return w.Token == own })
	for _, w := range now {
		if w.Token == own && !known {
			m.Joined = append(m.Joined, w)
			continue
		}
		for seen[0].Token != w.Token { // seen has w, because a step adds no waiter except its own
			m.Left, seen = append(m.Left, seen[0]), seen[1:]
		}
		if seen[0].differs(&w) {
			m.Kept = append(m.Kept, w)
		}
		seen = seen[1:]
	}
	m.Left = append(m.Left, seen...)
	return m
}

// differs reports whether a repeated claim has changed the waiter.
func (w *Waiter) differs(now *Waiter) bool {
	return w.Expires != now.Expires || w.TTL != now.TTL || w.Fences != now.Fences || !same(w.Value, now.Value) || !same(w.Above, now.Above)
}

// same reports whether two values are equal. A nil value is not equal to an empty one.
func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func decode(stored []byte) (*Entry, error) {
	if len(stored) == 0 {
		return &Entry{}, nil
	}
	return Decode(stored)
}

func miscounted(want, got int) error {
	return &CorruptError{Problem: fmt.Sprintf("%d wait, and there are rows of %d", want, got)}
}
