package locktable_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Waiters in rows of their own make no visible difference.
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

// However many wait, a step reads and writes no more than it changes, and finds places
// that lapsed in the midst.
func TestAStepCostsWhatItChangesHoweverManyWait(t *testing.T) {
	type cost struct{ loaded, changed, expiries, tries int }
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
			must(r.do(now+1, test.o))(t)
			equal(t, "cost", cost{r.loaded, r.changed, r.expiries, r.tries}, test.want)
		})
	}
}

// Rows and their indexes are for long queues. Many names have one or two waiters.
func TestAShortQueueStandsInTheEntry(t *testing.T) {
	r := &rack{long: locktable.LongQueue, short: locktable.ShortQueue}
	now := start
	step := func(o op) {
		t.Helper()
		now++
		must(r.do(now, o))(t)
		r.whole(t)
	}
	step(op{what: "acquire", claim: *mutex("holder")})
	for i := range locktable.LongQueue {
		step(op{what: "acquire", claim: *mutex(fmt.Sprint("client", i))})
		equal(t, "rows moved", r.changed, 0)
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
	equal(t, "rows moved", r.changed, 0)
}

// All readers that a writer kept waiting are let in at once, though the step has to look
// again and again.
func TestAllWhoFitAreLetInAlthoughTheyStandApart(t *testing.T) {
	r, now := lined(t, 300, reader)
	must(r.do(now+1, op{what: "release", claim: *mutex("holder")}))(t)
	e, err := locktable.Decode(r.stored)
	if err != nil || len(e.Holders) != 300 || len(r.line) != 0 || e.Overflow.Len != 0 {
		t.Fatalf("%d hold, %d wait, %v", len(e.Holders), len(r.line), err)
	}
	if r.tries > 7 {
		t.Errorf("it took %d tries", r.tries)
	}
}

// An operator deletes rows of waiters, all or some of them: those waiters have lost their
// places. The others are served, and notice nothing.
func TestAWaiterWhoseRowIsDeletedHasNoPlace(t *testing.T) {
	for what, after := range map[string]locktable.Instant{"at once": 1, "when all places have lapsed": locktable.Instant(2 * wait / time.Microsecond)} {
		for deleted := 1; deleted <= 4; deleted++ {
			for _, o := range []op{
				{what: "release", claim: *mutex("holder")},
				{what: "acquire", claim: *mutex("client4")},
				{what: "acquire", claim: *mutex("new")},
				{what: "release", claim: *mutex("client4")},
			} {
				t.Run(fmt.Sprintf("%s/%d/%s %s", what, deleted, o.what, whose(o.claim.Token)), func(t *testing.T) {
					r, now := lined(t, 4, mutex)
					r.line = r.line[:len(r.line)-deleted]
					for _, o := range []op{o, {what: "release", claim: *mutex("holder")}, {what: "release", claim: *mutex("client1")}} {
						now += after
						if _, err := r.do(now, o); err != nil {
							t.Fatalf("%v is answered %v", o, err)
						}
					}
					last := op{what: "acquire", claim: *mutex("last")}
					if answer, err := r.do(now.Add(2*wait), last); err != nil || !strings.HasPrefix(answer, "granted") {
						t.Errorf("when all places have lapsed, %v is answered %q, %v", last, answer, err)
					}
					r.whole(t)
				})
			}
		}
	}
}

// A waiter whose row says that its place goes on, and whose stored form says that it has
// lapsed, is damage.
func TestDamagedRowsAreNoFreePlace(t *testing.T) {
	for what, spoil := range map[string]func(r *rack){
		"a longer place":   func(r *rack) { r.line[0].Expires, r.forgets = start, true },
		"unreadable entry": func(r *rack) { r.stored = []byte("?") },
	} {
		for _, o := range []op{{what: "release", claim: *mutex("holder")}, {what: "acquire", claim: *mutex("client1")}} {
			t.Run(what+"/"+o.what, func(t *testing.T) {
				r, now := lined(t, 3, mutex)
				spoil(r)
				if _, err := r.do(now+1, o); !errors.As(err, new(*locktable.CorruptError)) {
					t.Errorf("answered %v", err)
				}
			})
		}
	}
}

// An operator deletes the row of a name, perhaps a damaged one, and not the rows of its
// waiters.
func TestRowsThatAreLeftOverAreNobodys(t *testing.T) {
	r, now := lined(t, 3, mutex)
	r.stored = nil
	for _, who := range []string{"a", "b"} {
		must(r.do(now+1, op{what: "acquire", claim: *mutex(who)}))(t)
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
