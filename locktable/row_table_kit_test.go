package locktable_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// rowTable is the simplest table with Rows: the stored entry of one name, and its waiters
// in order. It counts the rows and calls of a step.
type rowTable struct {
	stored []byte
	queue  []locktable.Waiter

	long, short int // the bounds of WithRows

	loaded, changed, expiries, tries int
	visible                          bool
	keepsExpired                     bool // Expire keeps expired waiters
	err                              error
}

func (r *rowTable) Expire(_ string, now locktable.Instant) (left int, next, last locktable.Instant, err error) {
	r.queue = slices.DeleteFunc(r.queue, func(w locktable.Waiter) bool { return w.Expires <= now && !r.keepsExpired })
	for i, w := range r.queue {
		if i == 0 || w.Expires < next {
			next = w.Expires
		}
		last = w.Since
	}
	r.expiries++
	return len(r.queue), next, last, r.err
}

func (r *rowTable) Load(_ string, q locktable.QueueQuery) (s locktable.QueuePart, err error) {
	s.First = slices.Clone(r.queue[:min(q.First, len(r.queue))])
	r.loaded += len(s.First)
	if q.Token.IsZero() {
		return s, r.err
	}
	at := r.find(q.Token)
	switch {
	case at >= 0:
		own := r.queue[at]
		s.Own = &own
	case q.CountEarlier:
		for at = 0; at < len(r.queue) && r.queue[at].Since <= q.Arrived; at++ {
		}
	}
	if q.CountAhead {
		s.Ahead = at
	}
	return s, r.err
}

func (r *rowTable) find(token driver.Token) int {
	return slices.IndexFunc(r.queue, func(w locktable.Waiter) bool { return w.Token == token })
}

func (r *rowTable) Store(_ string, m locktable.QueueChanges) error {
	r.changed += len(m.Joined) + len(m.Updated) + len(m.Left)
	for _, w := range m.Left {
		at := r.find(w.Token)
		r.queue = slices.Delete(r.queue, at, at+1)
	}
	for _, w := range m.Updated {
		r.queue[r.find(w.Token)] = w
	}
	r.queue = append(r.queue, m.Joined...)
	slices.SortStableFunc(r.queue, func(a, b locktable.Waiter) int { return cmp.Compare(a.Since, b.Since) })
	return r.err
}

// do runs an op through WithRows, and returns the answer and the signals as text.
func (r *rowTable) do(now locktable.Instant, o op) (string, error) {
	s := locktable.Step{Name: "job", Token: o.claim.Token, Place: o.kind == "acquire", Ticket: o.claim.Ticket}
	if o.kind == "renew" || o.kind == "break" {
		s.Token = driver.Token{}
	}
	var answer string
	r.loaded, r.changed, r.expiries, r.tries = 0, 0, 0, 0
	e, _, err := locktable.WithBounds(r.long, r.short, r, s, r.stored, now, func(e *locktable.Entry) {
		r.tries++
		switch c := o.claim; o.kind {
		case "acquire":
			answer = answerText(e.Acquire(now, &c, tokenName(c.Token)))
		case "renew":
			answer = errText(e.Renew(now, &driver.LeaseRef{Token: c.Token, TTL: o.duration, Value: c.Value}))
		case "release":
			answer = errText(e.Release(now, &driver.LeaseRef{Token: c.Token, MinHold: o.duration, Value: c.Value}))
		case "break":
			answer = errText(e.Break(now, o.fence, o.duration, driver.Owner{Client: "boss"}))
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

// storedWithWaiters returns the stored form of the entry with all waiters in it.
func (r *rowTable) storedWithWaiters(t tb) []byte {
	t.Helper()
	e := &locktable.Entry{}
	if r.stored != nil {
		var err error
		if e, err = locktable.Decode(r.stored); err != nil {
			t.Fatalf("the stored entry cannot be decoded: %v", err)
		}
	}
	if e.Overflow.Len != len(r.queue) {
		t.Fatalf("there are %d rows, but the entry counts %d", len(r.queue), e.Overflow.Len)
	}
	for _, w := range r.queue {
		if w.Expires < e.Overflow.FirstExpiry || w.Since > e.Overflow.Last {
			t.Fatalf("%s arrived at %d and expires at %d, outside of %+v", tokenName(w.Token), w.Since, w.Expires, e.Overflow)
		}
	}
	if n := len(r.queue); n > 0 && n <= r.short || len(e.Queue) > r.long {
		t.Fatalf("%d waiters are in the entry and %d in rows; the bounds are %d and %d", len(e.Queue), n, r.short, r.long)
	}
	if e.Overflow.Len > 0 {
		e.Queue, e.Overflow = r.queue, locktable.Overflow{}
	}
	return e.Append(nil)
}

func compareWithRows(t tb, fx *fixture, r *rowTable, o op) {
	t.Helper()
	want := fx.do(o)
	if o.kind == "sleep" {
		return
	}
	got, err := r.do(fx.now, o)
	if err != nil || got != want {
		t.Fatalf("%v\nin the entry: %s\nin rows:      %s, %v", o, want, got, err)
	}
	if r.visible != fx.entry.Visible {
		t.Fatalf("%v\nin the entry the change is visible: %v, in rows: %v", o, fx.entry.Visible, r.visible)
	}
	if !bytes.Equal(r.storedWithWaiters(t), fx.entry.Append(nil)) {
		t.Fatalf("%v\nin the entry: %s\nin rows: %q", o, entryText(fx.entry), r.storedWithWaiters(t))
	}
}

// newRowTable makes a rowTable with a holder and n waiters.
func newRowTable(t tb, n int, claim func(who string) *driver.Claim) (*rowTable, locktable.Instant) {
	t.Helper()
	r, now := &rowTable{}, start
	for i := range n + 1 {
		c := claim(fmt.Sprint("client", i))
		if i == 0 {
			c = mutex("holder")
			c.TTL = driver.MaxTTL
		}
		now++
		if _, err := r.do(now, op{kind: "acquire", claim: *c}); err != nil {
			t.Fatalf("claim %d: %v", i, err)
		}
	}
	return r, now
}
