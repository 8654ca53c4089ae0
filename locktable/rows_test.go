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

// Waiters in rows make no visible difference.
func TestAQueueInRowsIsServedLikeAQueueInTheEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fx, r, choose := newFixture(t), &rowTable{}, rapidChooser(t)
		r.long = choose("long", 4)
		r.short = choose("short", r.long+1)
		for range drawStepCount(t) {
			if o := fx.drawOp(choose, true); o.kind != "forget" {
				compareWithRows(t, fx, r, o)
			}
		}
	})
}

// However long the queue is, a step reads and writes only the rows that it changes.
func TestTheCostOfAStepDoesNotGrowWithTheQueue(t *testing.T) {
	type cost struct{ loaded, changed, expiries, tries int }
	for what, test := range map[string]struct {
		o    op
		want cost
	}{
		"renewal":    {op{kind: "renew", claim: *mutex("holder"), duration: driver.MaxTTL}, cost{0, 0, 0, 1}},
		"join":       {op{kind: "acquire", claim: *mutex("new")}, cost{0, 1, 0, 1}},
		"keep-alive": {op{kind: "acquire", claim: *mutex("client500")}, cost{0, 1, 0, 1}},
		"try":        {op{kind: "acquire", claim: *try(mutex("new"))}, cost{0, 0, 0, 1}},
		"leaving":    {op{kind: "release", claim: *mutex("client500")}, cost{0, 1, 0, 1}},
		"hand-over":  {op{kind: "release", claim: *mutex("holder")}, cost{1, 1, 0, 2}},
	} {
		t.Run(what, func(t *testing.T) {
			r, now := newRowTable(t, 1000, mutex)
			must(r.do(now+1, test.o))(t)
			equal(t, "cost", cost{r.loaded, r.changed, r.expiries, r.tries}, test.want)
		})
	}
}

// Rows and their indexes are for long queues. Many names have one or two waiters.
func TestAShortQueueIsStoredInTheEntry(t *testing.T) {
	r := &rowTable{long: locktable.LongQueue, short: locktable.ShortQueue}
	now := start
	step := func(o op) {
		t.Helper()
		now++
		must(r.do(now, o))(t)
		r.storedWithWaiters(t)
	}
	step(op{kind: "acquire", claim: *mutex("holder")})
	for i := range locktable.LongQueue {
		step(op{kind: "acquire", claim: *mutex(fmt.Sprint("client", i))})
		equal(t, "rows moved", r.changed, 0)
	}
	step(op{kind: "acquire", claim: *mutex("one more")})
	equal(t, "rows", len(r.queue), locktable.LongQueue+1)
	for i := range locktable.LongQueue {
		equal(t, "rows", len(r.queue), locktable.LongQueue+1-i)
		if len(r.queue) == locktable.ShortQueue+1 {
			break
		}
		step(op{kind: "release", claim: *mutex(fmt.Sprint("client", i))})
	}
	step(op{kind: "release", claim: *mutex("holder")}) // the first waiter holds after it
	equal(t, "rows", len(r.queue), 0)
	step(op{kind: "release", claim: *mutex("one more")})
	equal(t, "rows moved", r.changed, 0)
}

// All readers behind a writer are granted in one step, although it has to load rows
// several times.
func TestAllWaitersInRowsThatFitAreGranted(t *testing.T) {
	r, now := newRowTable(t, 300, reader)
	must(r.do(now+1, op{kind: "release", claim: *mutex("holder")}))(t)
	e, err := locktable.Decode(r.stored)
	if err != nil || len(e.Holders) != 300 || len(r.queue) != 0 || e.Overflow.Len != 0 {
		t.Fatalf("%d holders, %d waiters, %v; want 300 holders and no waiter", len(e.Holders), len(r.queue), err)
	}
	if r.tries > 7 {
		t.Errorf("the step took %d tries", r.tries)
	}
}

// If an operator deletes rows of waiters, only those waiters lose their places.
func TestAWaiterWhoseRowIsDeletedHasNoPlace(t *testing.T) {
	for what, after := range map[string]locktable.Instant{"at once": 1, "after all places expired": locktable.Instant(2 * wait / time.Microsecond)} {
		for deleted := 1; deleted <= 4; deleted++ {
			for _, o := range []op{
				{kind: "release", claim: *mutex("holder")},
				{kind: "acquire", claim: *mutex("client4")},
				{kind: "acquire", claim: *mutex("new")},
				{kind: "release", claim: *mutex("client4")},
			} {
				t.Run(fmt.Sprintf("%s/%d/%s %s", what, deleted, o.kind, tokenName(o.claim.Token)), func(t *testing.T) {
					r, now := newRowTable(t, 4, mutex)
					r.queue = r.queue[:len(r.queue)-deleted]
					for _, o := range []op{o, {kind: "release", claim: *mutex("holder")}, {kind: "release", claim: *mutex("client1")}} {
						now += after
						if _, err := r.do(now, o); err != nil {
							t.Fatalf("%v returns %v", o, err)
						}
					}
					last := op{kind: "acquire", claim: *mutex("last")}
					if answer, err := r.do(now.Add(2*wait), last); err != nil || !strings.HasPrefix(answer, "granted") {
						t.Errorf("after all places expired, %v returns %q, %v", last, answer, err)
					}
					r.storedWithWaiters(t)
				})
			}
		}
	}
}

// A waiter is damaged if its row has a later expiry than its stored form.
func TestADamagedRowIsACorruptError(t *testing.T) {
	for what, damage := range map[string]func(r *rowTable){
		"a longer place":   func(r *rowTable) { r.queue[0].Expires, r.keepsExpired = start, true },
		"unreadable entry": func(r *rowTable) { r.stored = []byte("?") },
	} {
		for _, o := range []op{{kind: "release", claim: *mutex("holder")}, {kind: "acquire", claim: *mutex("client1")}} {
			t.Run(what+"/"+o.kind, func(t *testing.T) {
				r, now := newRowTable(t, 3, mutex)
				damage(r)
				if _, err := r.do(now+1, o); !errors.As(err, new(*locktable.CorruptError)) {
					t.Errorf("the step returns %v, want a CorruptError", err)
				}
			})
		}
	}
}

// An operator may delete the row of a name, but not the rows of its waiters.
func TestLeftoverRowsOfADeletedNameAreDropped(t *testing.T) {
	r, now := newRowTable(t, 3, mutex)
	r.stored = nil
	for _, who := range []string{"a", "b"} {
		must(r.do(now+1, op{kind: "acquire", claim: *mutex(who)}))(t)
	}
	if len(r.queue) != 1 || r.queue[0].Token != tokenOf("b") {
		t.Fatalf("%d waiters, the first is %s; want only b", len(r.queue), tokenName(r.queue[0].Token))
	}
	r.storedWithWaiters(t)
}

func TestAnErrorOfTheRowsIsReturned(t *testing.T) {
	r, now := newRowTable(t, 3, mutex)
	r.err = errors.New("rows cannot be read")
	for _, after := range []locktable.Instant{now + 1, now.Add(wait)} {
		for _, o := range []op{{kind: "release", claim: *mutex("holder")}, {kind: "acquire", claim: *mutex("client1")}} {
			if _, err := r.do(after, o); !errors.Is(err, r.err) {
				t.Errorf("%v is answered %v", o, err)
			}
		}
	}
}
