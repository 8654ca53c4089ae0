package locktable_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// rack is the plainest table whose waiters stand apart: the stored entry of one name, and its queue in order.
// It counts what a step asked of the rows.
type rack struct {
	stored []byte
	line   []locktable.Waiter

	long, short int // how long a queue stands in the entry; 0 is not at all

	looked, moved, lapses, tries int
	err                          error
}

func (r *rack) Lapse(_ string, now locktable.Instant) (gone int, next, last locktable.Instant, err error) {
	was := len(r.line)
	r.line = slices.DeleteFunc(r.line, func(w locktable.Waiter) bool { return w.Expires <= now })
	for i, w := range r.line {
		if i == 0 || w.Expires < next {
			next = w.Expires
		}
		last = w.Since
	}
	r.lapses++
	return was - len(r.line), next, last, r.err
}

func (r *rack) Look(_ string, l locktable.Look) (s locktable.Sight, err error) {
	s.First = slices.Clone(r.line[:min(l.First, len(r.line))])
	r.looked += len(s.First)
	if l.Token.IsZero() {
		return s, r.err
	}
	at := r.find(l.Token)
	switch {
	case at >= 0:
		own := r.line[at]
		s.Own = &own
	case l.Early:
		for at = 0; at < len(r.line) && r.line[at].Since <= l.Came; at++ {
		}
	}
	if l.Rank {
		s.Ahead = at
	}
	return s, r.err
}

func (r *rack) find(token driver.Token) int {
	return slices.IndexFunc(r.line, func(w locktable.Waiter) bool { return w.Token == token })
}

func (r *rack) Move(_ string, m locktable.Moves) error {
	r.moved += len(m.Joined) + len(m.Kept) + len(m.Left)
	for _, w := range m.Left {
		at := r.find(w.Token)
		r.line = slices.Delete(r.line, at, at+1)
	}
	for _, w := range m.Kept {
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
	r.looked, r.moved, r.lapses, r.tries = 0, 0, 0, 0
	e, _, err := locktable.ApartWithin(r.long, r.short, r, s, r.stored, now, func(e *locktable.Entry) {
		r.tries++
		switch c := o.claim; o.what {
		case "acquire":
			answer = answerOf(e.Acquire(now, &c, whose(c.Token)))
		case "renew":
			answer = said(e.Renew(now, c.Token, o.d))
		case "release":
			answer = said(e.Release(now, c.Token, o.d))
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
	if e.Changed {
		r.stored = e.Append(nil)
	}
	return answer, nil
}

// whole is the entry with all who wait, as it would be stored in one piece.
func (r *rack) whole(t tb) []byte {
	t.Helper()
	e := &locktable.Entry{}
	if r.stored != nil {
		var err error
		if e, err = locktable.Decode(r.stored); err != nil {
			t.Fatalf("what was stored cannot be read: %v", err)
		}
	}
	if e.Rest.Len != len(r.line) {
		t.Fatalf("%d wait, and the entry says %d", len(r.line), e.Rest.Len)
	}
	for _, w := range r.line {
		if w.Expires < e.Rest.Lapses || w.Since > e.Rest.Last {
			t.Fatalf("%s came at %d and lapses at %d: not within %+v", whose(w.Token), w.Since, w.Expires, e.Rest)
		}
	}
	if n := len(r.line); n > 0 && n <= r.short || len(e.Queue) > r.long {
		t.Fatalf("%d stand in the entry and %d in rows; a queue of %d is short, one of more than %d long", len(e.Queue), n, r.short, r.long)
	}
	if e.Rest.Len > 0 {
		e.Queue, e.Rest = r.line, locktable.Rest{}
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
	if !bytes.Equal(r.whole(t), l.e.Append(nil)) {
		t.Fatalf("%v\nin one piece: %s\napart: %q", o, show(l.e), r.whole(t))
	}
}

// Waiters in rows of their own make no difference that anybody could see.
func TestAQueueThatStandsApartIsServedAsTheOneInTheEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, r, choose := newLab(t), &rack{}, drawing(t)
		r.long = choose("long", 4)
		r.short = choose("short", r.long+1)
		for range steps(t) {
			if o := l.next(choose, true); o.what != "forget" {
				sameApart(t, l, r, o)
			}
		}
	})
}

// line makes a rack with a holder and n who wait.
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

// However many wait, a step reads and writes no more than it changes, and finds those who lapsed in the midst.
func TestAStepCostsWhatItChangesHoweverManyWait(t *testing.T) {
	type cost struct{ looked, moved, lapses, tries int }
	for what, test := range map[string]struct {
		o    op
		want cost
	}{
		"renewal":    {op{what: "renew", claim: *mutex("holder"), d: driver.MaxTTL}, cost{0, 0, 0, 1}},
		"join":       {op{what: "acquire", claim: *mutex("new")}, cost{0, 1, 0, 1}},
		"keep-alive": {op{what: "acquire", claim: *mutex("client500")}, cost{0, 1, 0, 1}},
		"try":        {op{what: "acquire", claim: *try(mutex("new"))}, cost{0, 0, 0, 1}},
		"leaving":    {op{what: "release", claim: *mutex("client500")}, cost{0, 1, 0, 1}},
		"hand-over":  {op{what: "release", claim: *mutex("holder")}, cost{1, 1, 0, 2}},
	} {
		t.Run(what, func(t *testing.T) {
			r, now := lined(t, 1000, mutex)
			if _, err := r.do(now+1, test.o); err != nil {
				t.Fatal(err)
			}
			equal(t, "cost", cost{r.looked, r.moved, r.lapses, r.tries}, test.want)
		})
	}
}

// Rows and their indexes are for long queues. Many names have one or two who wait.
func TestAShortQueueStandsInTheEntry(t *testing.T) {
	r := &rack{long: locktable.LongQueue, short: locktable.ShortQueue}
	now := start
	step := func(o op) {
		t.Helper()
		now++
		if _, err := r.do(now, o); err != nil {
			t.Fatal(err)
		}
		r.whole(t)
	}
	step(op{what: "acquire", claim: *mutex("holder")})
	for i := range locktable.LongQueue {
		step(op{what: "acquire", claim: *mutex(fmt.Sprint("client", i))})
		equal(t, "rows moved", r.moved, 0)
	}
	step(op{what: "acquire", claim: *mutex("one more")})
	equal(t, "rows", len(r.line), locktable.LongQueue+1)
	for i := range locktable.LongQueue {
		equal(t, "rows", len(r.line), locktable.LongQueue+1-i)
		if len(r.line) == locktable.ShortQueue+1 {
			break
		}
		step(op{what: "release", claim: *mutex(fmt.Sprint("client", i))})
	}
	step(op{what: "release", claim: *mutex("holder")}) // and the first of the rest holds now
	equal(t, "rows", len(r.line), 0)
	step(op{what: "release", claim: *mutex("one more")})
	equal(t, "rows moved", r.moved, 0)
}

// All readers that a writer kept waiting are let in at once, though the step has to look again and again.
func TestAllWhoFitAreLetInAlthoughTheyStandApart(t *testing.T) {
	r, now := lined(t, 300, reader)
	if _, err := r.do(now+1, op{what: "release", claim: *mutex("holder")}); err != nil {
		t.Fatal(err)
	}
	e, err := locktable.Decode(r.stored)
	if err != nil || len(e.Holders) != 300 || len(r.line) != 0 || e.Rest.Len != 0 {
		t.Fatalf("%d hold, %d wait, %v", len(e.Holders), len(r.line), err)
	}
	if r.tries > 7 {
		t.Errorf("it took %d tries", r.tries)
	}
}

// Rows that are not as many as the entry says are damage, and damage is never a free place.
func TestRowsThatAreMissingAreDamage(t *testing.T) {
	for what, spoil := range map[string]func(r *rack){
		"all":        func(r *rack) { r.line = nil },
		"too many":   func(r *rack) { r.lapsedTwice() },
		"unreadable": func(r *rack) { r.stored = []byte("?") },
	} {
		t.Run(what, func(t *testing.T) {
			r, now := lined(t, 3, mutex)
			spoil(r)
			_, err := r.do(now.Add(wait), op{what: "release", claim: *mutex("holder")})
			if !errors.As(err, new(*locktable.CorruptError)) {
				t.Errorf("answered %v", err)
			}
		})
	}
}

// lapsedTwice puts in more who lapse than the entry knows.
func (r *rack) lapsedTwice() { r.line = append(r.line, r.line...) }

// Somebody deletes the row of a name, as one does that is damaged, and not those of its waiters.
func TestRowsThatAreLeftOverAreNobodys(t *testing.T) {
	r, now := lined(t, 3, mutex)
	r.stored = nil
	for _, who := range []string{"a", "b"} {
		if _, err := r.do(now+1, op{what: "acquire", claim: *mutex(who)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.line) != 1 || r.line[0].Token != tokenOf("b") {
		t.Fatalf("%d wait, the first of them is %s", len(r.line), whose(r.line[0].Token))
	}
	r.whole(t)
}

func TestTroubleWithTheRowsIsPassedOn(t *testing.T) {
	r, now := lined(t, 3, mutex)
	r.err = errors.New("the cellar is flooded")
	for _, after := range []locktable.Instant{now + 1, now.Add(wait)} {
		for _, o := range []op{{what: "release", claim: *mutex("holder")}, {what: "acquire", claim: *mutex("client1")}} {
			if _, err := r.do(after, o); !errors.Is(err, r.err) {
				t.Errorf("%v is answered %v", o, err)
			}
		}
	}
}
