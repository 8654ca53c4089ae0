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
// has Rows runs its steps through [WithRows]. A step then reads and writes only what it
// changes: renewing one place costs the same if a thousand others wait.
//
// The table calls the methods inside the atomic step.
type Rows interface {
	// Expire drops the waiters of a name whose places have expired at now. It returns how
	// many are left, when the next place expires, and when the last waiter arrived, or
	// zeros if none is left.
	Expire(name string, now Instant) (left int, next, last Instant, err error)

	// Load loads the waiters that a step needs, in one query. None of them has expired.
	Load(name string, q QueueQuery) (QueuePart, error)

	// Store stores the changes that a step made to the queue of a name.
	Store(name string, m QueueChanges) error
}

// A QueueQuery describes the part of a queue that a step needs.
type QueueQuery struct {
	First        int          // the number of waiters to load from the head
	Token        driver.Token // the claim whose place to find; zero means none
	CountAhead   bool         // count the waiters ahead of Token's place, too
	CountEarlier bool         // if Token has no place: count the waiters that arrived no later than Arrived
	Arrived      Instant
}

// A QueuePart is the part of a queue that a QueueQuery asked for.
type QueuePart struct {
	First []Waiter
	Own   *Waiter // nil if the token has no place
	Ahead int
}

// QueueChanges are the changes that a step made to a queue.
type QueueChanges struct {
	Joined  []Waiter // one at most, unless a whole queue moves into the rows
	Updated []Waiter // one at most: its Expires, TTL, Fences, Value or ValueBelow has changed
	Left    []Waiter // granted, refused for their ValueBelow, released, or moved into the entry
}

// A short queue is stored in the entry, as in a table without rows. For a few waiters,
// one value costs half as much as rows with their indexes. At 16 waiters both cost the
// same.
var rowBounds = bounds{long: 8, short: 2}

// bounds decide where a queue is stored: a queue of more than long waiters moves into
// rows, and a queue that has shrunk to short waiters moves back.
type bounds struct{ long, short int }

// WithRows runs f on the entry of a step, and stores the waiters in rows if they are
// many. f must remove the expired places, or return an error, which WithRows returns.
// stored is the entry without the waiters in rows, or empty if there is no entry.
//
// WithRows stores the changes in the rows, and returns the entry without those waiters.
// The caller stores the entry if it is Changed and its stored form differs. The form may
// be equal, because renewing a place in a row changes only the row. QueueChanges are all
// changes that the step made to the queue, in rows or not, except expired places.
func WithRows(rows Rows, s Step, stored []byte, now Instant, f func(e *Entry) error) (*Entry, QueueChanges, error) {
	return rowBounds.withRows(rows, s, stored, now, f)
}

func (b bounds) withRows(rows Rows, s Step, stored []byte, now Instant, f func(e *Entry) error) (*Entry, QueueChanges, error) {
	e, err := decode(stored)
	switch {
	case err != nil:
		return nil, QueueChanges{}, err
	case e.Overflow.Len == 0:
		return b.runInEntry(rows, s, e, now, f)
	}
	waiting := e.Overflow.Len
	overflow, expired, err := expire(rows, s.Name, e.Overflow, now)
	if err != nil {
		return nil, QueueChanges{}, err
	}
	e, loaded, err := runWithWaiters(rows, s, e, stored, overflow, overflow.Len < waiting, now, f)
	if _, corrupt := errors.AsType[*CorruptError](err); corrupt {
		// An operator may have deleted rows of waiters. Count the rows that are left.
		if overflow, expired, err = expire(rows, s.Name, Overflow{}, now); err == nil {
			e, err = decode(stored)
		}
		if err == nil {
			e, loaded, err = runWithWaiters(rows, s, e, stored, overflow, overflow.Len < waiting, now, f)
		}
	}
	if err != nil {
		return nil, QueueChanges{}, err
	}
	m := changesOf(loaded, e, s.Token)
	if len(m.Joined)+len(m.Updated)+len(m.Left) > 0 {
		if err := rows.Store(s.Name, m); err != nil {
			return nil, QueueChanges{}, err
		}
	}
	e.Queue, e.Overflow, e.Changed = nil, overflow.after(m), e.Changed || expired
	if overflow.Len < waiting && !e.Visible {
		e.Visible = true
		e.signalChange()
	}
	if expired || len(m.Left) > 0 {
		err = b.moveIntoEntry(rows, s.Name, e)
	}
	return e, m, err
}

// runWithWaiters runs f on an entry that has the first waiters and the step's own place.
// If f needs more (Entry.NeedsMore), it loads more waiters and runs f again. It returns
// the entry and all waiters that it loaded. expired means that places have expired.
func runWithWaiters(rows Rows, s Step, e *Entry, stored []byte, overflow Overflow, expired bool, now Instant, f func(e *Entry) error) (_ *Entry, loaded []Waiter, err error) {
	for first := e.waitersToLoad(now); ; first = max(1, 4*first) {
		if e.Overflow = overflow; overflow.Len > 0 {
			if loaded, err = e.loadQueue(rows, s, min(first, overflow.Len), now); err != nil {
				return nil, nil, err
			}
		}
		e.headMustAsk = expired
		if err := f(e); err != nil {
			return nil, nil, err
		}
		if !e.NeedsMore {
			return e, loaded, nil
		}
		if first >= overflow.Len {
			return nil, nil, wrongCount(overflow.Len, overflow.Len+1)
		}
		if e, err = decode(stored); err != nil {
			return nil, nil, err
		}
	}
}

// expire removes the waiters whose places have expired.
func expire(rows Rows, name string, overflow Overflow, now Instant) (rest Overflow, expired bool, err error) {
	if overflow.FirstExpiry > now && now >= overflow.Last { // if the clock ran back, arrivals depend on the exact Last
		return overflow, false, nil
	}
	left, next, last, err := rows.Expire(name, now)
	return Overflow{Len: left, Last: last, FirstExpiry: next}, true, err
}

func (overflow Overflow) after(m QueueChanges) Overflow {
	overflow.Len += len(m.Joined) - len(m.Left)
	for _, w := range m.Joined {
		if overflow.Len == 1 {
			overflow.Last, overflow.FirstExpiry = w.Since, w.Expires
		}
		overflow.Last, overflow.FirstExpiry = max(overflow.Last, w.Since), min(overflow.FirstExpiry, w.Expires)
	}
	if overflow.Len == 0 {
		return Overflow{}
	}
	return overflow
}

// runInEntry runs f on an entry that contains its queue. If the queue has become long,
// runInEntry moves it into rows.
func (b bounds) runInEntry(rows Rows, s Step, e *Entry, now Instant, f func(e *Entry) error) (*Entry, QueueChanges, error) {
	before := slices.DeleteFunc(slices.Clone(e.Queue), func(w Waiter) bool { return w.Expires <= now })
	if err := f(e); err != nil {
		return nil, QueueChanges{}, err
	}
	m := changesOf(before, e, s.Token)
	if len(e.Queue) <= b.long {
		return e, m, nil
	}
	// Rows that are already there belong to an entry that an operator deleted.
	if _, _, _, err := rows.Expire(s.Name, maxInstant); err != nil {
		return nil, QueueChanges{}, err
	}
	if err := rows.Store(s.Name, QueueChanges{Joined: e.Queue}); err != nil {
		return nil, QueueChanges{}, err
	}
	e.Overflow = Overflow{Len: len(e.Queue), Last: e.Queue[len(e.Queue)-1].Since, FirstExpiry: maxInstant}
	for _, w := range e.Queue {
		e.Overflow.FirstExpiry = min(e.Overflow.FirstExpiry, w.Expires)
	}
	e.Queue = nil
	return e, m, nil
}

// moveIntoEntry moves a queue that has become short from its rows into the entry.
func (b bounds) moveIntoEntry(rows Rows, name string, e *Entry) error {
	n := e.Overflow.Len
	if n == 0 || n > b.short {
		return nil
	}
	part, err := rows.Load(name, QueueQuery{First: n})
	if err != nil {
		return err
	}
	e.Queue, e.Overflow = part.First, Overflow{}
	return rows.Store(name, QueueChanges{Left: part.First})
}

// waitersToLoad returns the number of waiters to load at first: none, if the name cannot
// be granted.
func (e *Entry) waitersToLoad(now Instant) int {
	excludesAll := func(h Holder) bool { return h.Weight == driver.Exclusive && h.Expires > now }
	if e.Closed > now || slices.ContainsFunc(e.Holders, excludesAll) {
		return 0
	}
	return 1
}

// loadQueue loads the first waiters and the step's own place into the entry. It returns
// these waiters.
func (e *Entry) loadQueue(rows Rows, s Step, first int, now Instant) (loaded []Waiter, err error) {
	q := QueueQuery{First: first}
	if h := e.holder(s.Token); !s.Token.IsZero() && (h == nil || h.Expires <= now) {
		q.Token, q.CountAhead, q.Arrived = s.Token, s.Place, e.arrivalTime(now, s.Ticket)
		q.CountEarlier = q.CountAhead && q.Arrived < e.Overflow.Last
	}
	if q == (QueueQuery{}) {
		return nil, nil // usually a renewal, which does not need the queue
	}
	part, err := rows.Load(s.Name, q)
	if err != nil {
		return nil, err
	}
	if len(part.First) != first {
		return nil, wrongCount(e.Overflow.Len, len(part.First))
	}
	ahead := e.Overflow.Len
	if part.Own != nil || q.CountEarlier {
		ahead = part.Ahead
	}
	loaded = slices.Clone(part.First)
	e.Queue, e.Overflow.Len = part.First, e.Overflow.Len-first
	e.Overflow.Ahead = max(0, ahead-first)
	own := part.Own
	if own != nil && !slices.ContainsFunc(loaded, func(w Waiter) bool { return w.Token == own.Token }) {
		loaded = append(loaded, *own)
		e.Overflow.Own = own
	}
	if e.Overflow.Own != nil && e.Overflow.Len == 0 {
		return nil, wrongCount(first, first+1)
	}
	for _, w := range loaded {
		if w.Expires <= now {
			return nil, &CorruptError{Problem: "the row of a waiter has a later expiry than its place"}
		}
	}
	return loaded, nil
}

// changesOf compares the waiters before the step with the waiters after it. Both are in
// the order of the queue.
func changesOf(loaded []Waiter, e *Entry, own driver.Token) (m QueueChanges) {
	after := e.Queue
	if e.Overflow.Own != nil {
		after = append(after, *e.Overflow.Own)
	}
	known := slices.ContainsFunc(loaded, func(w Waiter) bool { return w.Token == own })
	for _, w := range after {
		if w.Token == own && !known {
			m.Joined = append(m.Joined, w)
			continue
		}
		for loaded[0].Token != w.Token { // loaded has w, because a step adds no waiter except its own
			m.Left, loaded = append(m.Left, loaded[0]), loaded[1:]
		}
		if loaded[0].differs(&w) {
			m.Updated = append(m.Updated, w)
		}
		loaded = loaded[1:]
	}
	m.Left = append(m.Left, loaded...)
	return m
}

// differs reports whether a repeated claim has changed the waiter.
func (w *Waiter) differs(now *Waiter) bool {
	return w.Expires != now.Expires || w.TTL != now.TTL || w.Fences != now.Fences || !equalValues(w.Value, now.Value) || !equalValues(w.ValueBelow, now.ValueBelow)
}

// equalValues reports whether two values are equal. Nil does not equal an empty value.
func equalValues(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func decode(stored []byte) (*Entry, error) {
	if len(stored) == 0 {
		return &Entry{}, nil
	}
	return Decode(stored)
}

func wrongCount(want, got int) error {
	return &CorruptError{Problem: fmt.Sprintf("the entry counts %d waiters, and there are %d rows", want, got)}
}
