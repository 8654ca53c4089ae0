package locktable

import (
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/driver"
)

// Rows are waiters that are stored one by one, apart from the entries of their names, in the order in which they
// came: first by Since, then by their joining. A table that has them runs its steps through [Apart]; a step then
// reads and writes what it changes, and not a thousand waiters to keep the place of one.
//
// The methods are called inside the atomic step.
type Rows interface {
	// Lapse drops those of a name whose place is over at now, and says how many they were; and of the others,
	// when the next place lapses, and when the last of them came.
	Lapse(name string, now Instant) (gone int, next, last Instant, err error)

	// Look finds in one go what a step has to see. None of those who wait has lapsed.
	Look(name string, l Look) (Sight, error)

	// Move stores what a step did to the queue of a name.
	Move(name string, m Moves) error
}

// A Look is what a step has to see of a queue.
type Look struct {
	First int          // the first so many
	Token driver.Token // the place of this one; zero is nobody's
	Rank  bool         // and how many stand ahead of it
	Early bool         // if it has no place: how many came by Came, which are not all
	Came  Instant
}

// A Sight answers a Look.
type Sight struct {
	First []Waiter
	Own   *Waiter // nil if the token has no place
	Ahead int
}

// Moves are what a step did to a queue.
type Moves struct {
	Joined []Waiter // one at most
	Kept   []Waiter // one at most: it has another Expires, or another Run
	Left   []Waiter // because they were granted, or did not want to wait any more
}

// Apart runs f on the entry of a step whose waiters stand in rows. stored is the entry without them, empty if
// there is none. Apart stores the moves. The entry that it returns is again without those who wait; the caller
// stores it if it is Changed and its stored form is another one: whoever keeps a place changes only that.
func Apart(rows Rows, s Step, stored []byte, now Instant, f func(e *Entry)) (*Entry, Moves, error) {
	e, err := decode(stored)
	if err != nil {
		return nil, Moves{}, err
	}
	line, lapsed := e.Rest, false                                // all who wait
	if line.Len > 0 && (line.Lapses <= now || now < line.Last) { // the clock ran back: now the last one counts
		gone, next, last, err := rows.Lapse(s.Name, now)
		if err != nil {
			return nil, Moves{}, err
		}
		if gone > line.Len {
			return nil, Moves{}, miscounted(line.Len, gone)
		}
		line, lapsed = Rest{Len: line.Len - gone, Last: last, Lapses: next}, true
	}

	var seen []Waiter
	for first := e.first(now); ; first = max(1, 4*first) {
		if e.Rest = line; line.Len > 0 {
			if seen, err = e.see(rows, s, min(first, line.Len), now); err != nil {
				return nil, Moves{}, err
			}
		}
		if f(e); !e.Short {
			break
		}
		if first >= line.Len {
			return nil, Moves{}, miscounted(line.Len, line.Len+1)
		}
		if e, err = decode(stored); err != nil {
			return nil, Moves{}, err
		}
	}
	m := moved(seen, e, s.Token)
	if line.Len == 0 && len(m.Joined) > 0 { // what still stands there waited for an entry that somebody deleted
		if _, _, _, err := rows.Lapse(s.Name, maxInstant); err != nil {
			return nil, Moves{}, err
		}
	}
	if len(m.Joined)+len(m.Kept)+len(m.Left) > 0 {
		if err := rows.Move(s.Name, m); err != nil {
			return nil, Moves{}, err
		}
	}
	line.Len += len(m.Joined) - len(m.Left)
	for _, w := range m.Joined {
		if line.Len == 1 {
			line.Last, line.Lapses = w.Since, w.Expires
		}
		line.Last, line.Lapses = max(line.Last, w.Since), min(line.Lapses, w.Expires)
	}
	if line.Len == 0 {
		line = Rest{}
	}
	e.Queue, e.Rest, e.Changed = nil, line, e.Changed || lapsed
	return e, m, nil
}

// first is how many of the queue to look at to begin with: nobody, if nobody can be granted the name.
func (e *Entry) first(now Instant) int {
	full := func(h Holder) bool { return h.Weight == driver.Exclusive && h.Expires > now }
	if e.Closed > now || slices.ContainsFunc(e.Holders, full) {
		return 0
	}
	return 1
}

// see shows the entry the first of those who wait, and the step's own place. It returns all who are seen.
func (e *Entry) see(rows Rows, s Step, first int, now Instant) (seen []Waiter, err error) {
	l := Look{First: first}
	if h := e.holder(s.Token); !s.Token.IsZero() && (h == nil || h.Expires <= now) {
		l.Token, l.Rank, l.Came = s.Token, s.Place, e.came(now, s.Ticket)
		l.Early = l.Rank && l.Came < e.Rest.Last
	}
	if l == (Look{}) {
		return nil, nil // a renewal, mostly: the queue is none of its business
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
	return seen, nil
}

// moved compares those who were seen with those who are there now. Both are in the order of the queue.
func moved(seen []Waiter, e *Entry, own driver.Token) (m Moves) {
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
		for seen[0].Token != w.Token { // it is there: a step adds nobody but its own
			m.Left, seen = append(m.Left, seen[0]), seen[1:]
		}
		if seen[0].Expires != w.Expires || seen[0].Fences != w.Fences {
			m.Kept = append(m.Kept, w)
		}
		seen = seen[1:]
	}
	m.Left = append(m.Left, seen...)
	return m
}

func decode(stored []byte) (*Entry, error) {
	if len(stored) == 0 {
		return &Entry{}, nil
	}
	return Decode(stored)
}

func miscounted(want, got int) error {
	return &CorruptError{Problem: fmt.Sprintf("%d wait, and there are rows of %d", want, got)}
}
