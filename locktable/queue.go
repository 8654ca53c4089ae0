package locktable

import (
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Overflow is the part of a queue that a step does not load. If waiters are stored apart
// from their entry, a step loads the first of them and the place of its own claim, so its
// cost does not grow with the queue.
//
// A stored Overflow has only the first three fields, and describes all waiters: the
// stored Queue is then empty.
type Overflow struct {
	Len         int     // the number of waiters behind those in Entry.Queue
	Last        Instant // no waiter arrived later than this
	FirstExpiry Instant // no place expires before this

	Own   *Waiter // the step's own claim, if it is among these Len waiters
	Ahead int     // the number of these waiters that are ahead of the step's claim, or would be if it joined
}

// waiting returns the length of the whole queue.
func (e *Entry) waiting() int { return len(e.Queue) + e.Overflow.Len }

// place returns the waiter with the token, and its position, from 1. The position is 0 if
// the token has no place.
func (e *Entry) place(token driver.Token) (w *Waiter, position int) {
	for i := range e.Queue {
		if e.Queue[i].Token == token {
			return &e.Queue[i], i + 1
		}
	}
	if own := e.Overflow.Own; own != nil && own.Token == token {
		return own, len(e.Queue) + e.Overflow.Ahead + 1
	}
	return nil, 0
}

// arrival returns the time of arrival of a claim that joins the queue now, and its
// position there. Without a ticket the claim arrives now, behind all others. With a
// ticket, it counts as having arrived at the ticket's time, but no more than MaxLead ago.
// No claim arrives earlier than the waiter ahead of it, so that no claim passes others
// after the clock ran back.
func (e *Entry) arrival(now Instant, c *driver.Claim) (arrived Instant, position int) {
	ticket := c.Ticket
	if !c.Queue {
		ticket = 0 // a claim that does not queue passes no waiter
	}
	arrived = e.arrivalTime(now, ticket)
	n := len(e.Queue)
	switch {
	case ticket == 0:
		return arrived, e.waiting() + 1
	case e.Overflow.Len > 0 && (n == 0 || arrived >= e.Queue[n-1].Since):
		return arrived, n + e.Overflow.Ahead + 1
	}
	for n > 0 && e.Queue[n-1].Since > arrived {
		n--
	}
	return arrived, n + 1
}

func (e *Entry) arrivalTime(now Instant, ticket uint64) Instant {
	if n := len(e.Queue); n > 0 {
		now = max(now, e.Queue[n-1].Since)
	}
	if e.Overflow.Len > 0 {
		now = max(now, e.Overflow.Last)
	}
	if ticket == 0 || now < 0 {
		return now
	}
	return max(Instant(min(ticket, uint64(now))), now-Instant(driver.MaxLead/time.Microsecond))
}

func (e *Entry) join(position int, w Waiter) *Waiter {
	if i := position - 1; i < len(e.Queue) || e.Overflow.Len == 0 {
		e.Queue = slices.Insert(e.Queue, i, w)
		return &e.Queue[i]
	}
	own := w // not &w, because w would then always be allocated on the heap
	e.Overflow.Own, e.Overflow.Ahead = &own, position-1-len(e.Queue)
	e.Overflow.Len++
	return &own
}

// removePlace removes a token's place from the queue, and reports whether there was one.
func (e *Entry) removePlace(token driver.Token) bool {
	w, position := e.place(token)
	switch {
	case w == nil || token.IsZero():
		return false
	case position <= len(e.Queue):
		e.Queue = slices.Delete(e.Queue, position-1, position)
		e.headMustAsk = e.headMustAsk || position == 1
	default:
		e.headMustAsk = e.headMustAsk || len(e.Queue) == 0 // the claim may have been the head, which is not loaded
		e.Overflow.Own = nil
		e.Overflow.Len--
	}
	return true
}

// OpensAt returns the time at which the name opens without a request of any client: when
// it is no longer closed, or when the first minimum hold is over. It is 0 if neither
// applies.
func (e *Entry) OpensAt() (at Instant) {
	if e.Closed != 0 {
		return e.Closed
	}
	for _, h := range e.Holders {
		if h.Token.IsZero() && (at == 0 || h.Expires < at) {
			at = h.Expires
		}
	}
	return at
}
