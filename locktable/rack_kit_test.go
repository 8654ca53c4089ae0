package locktable_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// rack is the simplest table whose waiters are stored apart: the stored entry of one
// name, and its queue in order. It counts what a step asked of the rows.
type rack struct {
	stored []byte
	line   []locktable.Waiter

	long, short int // how long a queue in the entry may be; 0 is not at all

	loaded, changed, expiries, tries int
	visible                          bool
	forgets                          bool // to drop waiters that have lapsed
	err                              error
}

func (r *rack) Expire(_ string, now locktable.Instant) (left int, next, last locktable.Instant, err error) {
	r.line = slices.DeleteFunc(r.line, func(w locktable.Waiter) bool { return w.Expires <= now && !r.forgets })
	for i, w := range r.line {
		if i == 0 || w.Expires < next {
			next = w.Expires
		}
		last = w.Since
	}
	r.expiries++
	return len(r.line), next, last, r.err
}

func (r *rack) Load(_ string, q locktable.QueueQuery) (s locktable.QueuePart, err error) {
	s.First = slices.Clone(r.line[:min(q.First, len(r.line))])
	r.loaded += len(s.First)
	if q.Token.IsZero() {
		return s, r.err
	}
	at := r.find(q.Token)
	switch {
	case at >= 0:
		own := r.line[at]
		s.Own = &own
	case q.CountEarlier:
		for at = 0; at < len(r.line) && r.line[at].Since <= q.Arrived; at++ {
		}
	}
	if q.CountAhead {
		s.Ahead = at
	}
	return s, r.err
}

func (r *rack) find(token driver.Token) int {
	return slices.IndexFunc(r.line, func(w locktable.Waiter) bool { return w.Token == token })
}

func (r *rack) Store(_ string, m locktable.QueueChanges) error {
	r.changed += len(m.Joined) + len(m.Updated) + len(m.Left)
	for _, w := range m.Left {
		at := r.find(w.Token)
		r.line = slices.Delete(r.line, at, at+1)
	}
	for _, w := range m.Updated {
		r.line[r.find(w.Token)] = w
	}
	r.line = append(r.line, m.Joined...)
	slices.SortStableFunc(r.line, func(a, b locktable.Waiter) int { return cmp.Compare(a.Since, b.Since) })
	return r.err
}

// do runs an op as a table would, and returns all that can be seen of it.
func (r *rack) do(now locktable.Instant, o op) (string, error) {
	s := locktable.Step{Name: "job", Token: o.claim.Token, Place: o.what == "acquire", Ticket: o.claim.Ticket}
	if o.what == "renew" || o.what == "break" {
		s.Token = driver.Token{}
	}
	var answer string
	r.loaded, r.changed, r.expiries, r.tries = 0, 0, 0, 0
	e, _, err := locktable.WithBounds(r.long, r.short, r, s, r.stored, now, func(e *locktable.Entry) {
		r.tries++
		switch c := o.claim; o.what {
		case "acquire":
			answer = answerOf(e.Acquire(now, &c, whose(c.Token)))
		case "renew":
			answer = said(e.Renew(now, &driver.LeaseRef{Token: c.Token, TTL: o.d, Value: c.Value}))
		case "release":
			answer = said(e.Release(now, &driver.LeaseRef{Token: c.Token, MinHold: o.d, Value: c.Value}))
		case "break":
			answer = said(e.Break(now, o.fence, o.d, driver.Owner{Client: "boss"}))
		}
	})
	if err != nil {
		return "", err
	}
	for _, s := range e.Signals {
		answer += fmt.Sprintf("; signal %d to %s, fence %d, run %d", s.Kind, s.Inbox, s.Fence, s.Fences)
	}
	if r.visible = e.Visible; e.Changed {
		r.stored = e.Append(nil)
	}
	return answer, nil
}

// whole is the entry with all waiters, as it would be stored in one piece.
func (r *rack) whole(t tb) []byte {
	t.Helper()
	e := &locktable.Entry{}
	if r.stored != nil {
		var err error
		if e, err = locktable.Decode(r.stored); err != nil {
			t.Fatalf("what was stored cannot be read: %v", err)
		}
	}
	if e.Overflow.Len != len(r.line) {
		t.Fatalf("%d wait, and the entry says %d", len(r.line), e.Overflow.Len)
	}
	for _, w := range r.line {
		if w.Expires < e.Overflow.FirstExpiry || w.Since > e.Overflow.Last {
			t.Fatalf("%s came at %d and lapses at %d: not within %+v", whose(w.Token), w.Since, w.Expires, e.Overflow)
		}
	}
	if n := len(r.line); n > 0 && n <= r.short || len(e.Queue) > r.long {
		t.Fatalf("%d stand in the entry and %d in rows; a queue of %d is short, one of more than %d long", len(e.Queue), n, r.short, r.long)
	}
	if e.Overflow.Len > 0 {
		e.Queue, e.Overflow = r.line, locktable.Overflow{}
	}
	return e.Append(nil)
}

func sameApart(t tb, l *lab, r *rack, o op) {
	t.Helper()
	want := l.do(o)
	if o.what == "sleep" {
		return
	}
	got, err := r.do(l.now, o)
	if err != nil || got != want {
		t.Fatalf("%v\nin one piece: %s\napart:        %s, %v", o, want, got, err)
	}
	if r.visible != l.e.Visible {
		t.Fatalf("%v\nin one piece the change is visible: %v, apart: %v", o, l.e.Visible, r.visible)
	}
	if !bytes.Equal(r.whole(t), l.e.Append(nil)) {
		t.Fatalf("%v\nin one piece: %s\napart: %q", o, show(l.e), r.whole(t))
	}
}

// lined makes a rack with a holder and n waiters.
func lined(t tb, n int, claim func(who string) *driver.Claim) (*rack, locktable.Instant) {
	t.Helper()
	r, now := &rack{}, start
	for i := range n + 1 {
		c := claim(fmt.Sprint("client", i))
		if i == 0 {
			c = mutex("holder")
			c.TTL = driver.MaxTTL
		}
		now++
		if _, err := r.do(now, op{what: "acquire", claim: *c}); err != nil {
			t.Fatalf("claim %d: %v", i, err)
		}
	}
	return r, now
}
