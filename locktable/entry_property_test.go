package locktable_test

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// The lab checks the laws at every step, so there is nothing to see in the first two
// properties but what happens. They are two because what is promised differs: a clock
// that runs back is survived as long as the entry is remembered, and an entry may be
// forgotten as long as the clock does not run back.

func TestLawsHoldWhateverHappensAlthoughTheClockRunsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, choose := newLab(t), drawing(t)
		for range steps(t) {
			if o := l.next(choose, true); o.what != "forget" {
				l.do(o)
			}
		}
	})
}

func TestLawsHoldWhateverHappensAlthoughIdleEntriesAreForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, choose := newLab(t), drawing(t)
		for range steps(t) {
			l.do(l.next(choose, false))
		}
	})
}

// As they are stored after every step, entries behave as they do in memory.
func TestAStoredEntryBehavesAsTheOneInMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inMemory, stored, choose := newLab(t), newLab(t), drawing(t)
		for range steps(t) {
			o := inMemory.next(choose, false)
			if want, got := inMemory.do(o), stored.do(o); got != want {
				t.Fatalf("%v\nin memory: %s\nstored:    %s", o, want, got)
			}
			back, err := locktable.Decode(stored.e.Append(nil))
			noError(t, err)
			stored.e = back
		}
	})
}

// Asking again at once, with the same token, gives the same answer and changes nothing
// for the others.
func TestAskingAgainAfterALostReplyIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, choose := newLab(t), drawing(t)
		for range steps(t) {
			o := l.next(choose, false)
			// A claim that is refused for the value loses its place. Meanwhile the
			// waiters behind it may have written a smaller one.
			if said := l.do(o); o.what != "acquire" || strings.HasPrefix(said, "refused for the value") {
				continue
			}
			c := o.claim
			before := string(l.e.Append(nil))
			first := answerOf(l.e.Acquire(l.now, &c, c.Owner.Client))
			again := answerOf(l.acquire(&c))
			if first != again || string(l.e.Append(nil)) != before || len(l.e.Signals) > 0 {
				t.Fatalf("%v\nis answered %s\nand then    %s", o, first, again)
			}
		}
	})
}

// Refuses says what Acquire would say, and has done what Acquire does before it grants.
func TestRefusesSaysWhatAcquireWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, choose := newLab(t), drawing(t)
		for range steps(t) {
			o := l.next(choose, false)
			if o.what == "acquire" {
				c := o.claim
				c.Queue, c.QueueTTL, c.Force = false, 0, false
				whole, halves := clone(l.e), clone(l.e)
				want := answerOf(whole.Acquire(l.now, &c, ""))
				err := halves.Refuses(l.now, &c)
				got, signals := answerOf(driver.Grant{}, err), halves.Signals
				if err == nil {
					got = answerOf(halves.Acquire(l.now, &c, ""))
					signals = append(signals, halves.Signals...)
				}
				if got != want || !slices.Equal(signals, whole.Signals) || !bytes.Equal(halves.Append(nil), whole.Append(nil)) {
					t.Fatalf("%v\nat once: %s, %s\nin two:  %s, %s", o, want, show(whole), got, show(halves))
				}
			}
			l.do(o)
		}
	})
}

// In any state, if all clients are dead except one that keeps asking, that one is granted
// as soon as the last lease and its lock-delay, and each place in the queue and its
// possible grant, have ended.
func TestWhoKeepsAskingIsGrantedWhenAllOthersAreDead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, choose := newLab(t), drawing(t)
		for range steps(t) {
			l.do(l.next(choose, false))
		}
		c := claimOf(choose)
		c.Token, c.Owner.Client, c.Force, c.Queue, c.QueueTTL = tokenOf("last"), "last", false, true, time.Hour
		c.Above = nil
		held := heldOf(l.acquire(&c))
		// The dead in the queue hold the name at the worst until their places would have
		// lapsed.
		deadline := max(l.now, l.e.Closed)
		for _, h := range l.e.Holders {
			deadline = max(deadline, h.Expires.Add(h.LockDelay))
		}
		for _, w := range l.e.Queue {
			if w.Token != c.Token && w.Expires > l.now {
				deadline = max(deadline, w.Expires.Add(w.LockDelay))
			}
		}
		for held != nil {
			if l.now > deadline {
				t.Fatalf("still refused %v after the deadline: %v", deadline.Until(l.now), held)
			}
			l.sleep(held.RetryAfter) // asking only when it makes sense is often enough
			held = heldOf(l.acquire(&c))
		}
	})
}

// The head of the queue waits only for the holders: if they are dead, they cost their TTL
// and lock-delay, no more.
func TestTheHeadIsGrantedAtTheInstantTheLastHolderIsOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, choose := newLab(t), drawing(t)
		var over locktable.Instant
		for i := range rapid.IntRange(1, 4).Draw(t, "holders") {
			c := reader(clients[i])
			c.TTL, c.LockDelay = pick(choose, "TTL", durations...), pick(choose, "lock-delay", delays...)
			l.granted(c)
			over = max(over, l.now.Add(c.TTL).Add(c.LockDelay))
			l.sleep(pick(choose, "gap", 0, µs, ms))
		}
		head := mutex("head")
		for {
			held := heldOf(l.acquire(head))
			if held == nil {
				break
			}
			l.sleep(min(held.RetryAfter, wait/2)) // its keep-alive
		}
		if l.now != over {
			t.Fatalf("granted %v after the last holder was over", over.Until(l.now))
		}
	})
}

// A client that died in the queue delays the next by what is left of its place, once it
// would be its turn.
func TestADeadWaiterCostsTheNextItsQueueTTL(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, choose := newLab(t), drawing(t)
		l.granted(mutex("a"))
		dead := with(mutex("dead"), func(c *driver.Claim) { c.QueueTTL = pick(choose, "queue TTL", durations...) })
		l.refused(dead)
		lapses := l.now.Add(dead.QueueTTL)
		l.refused(mutex("b"))
		l.sleep(time.Duration(rapid.IntRange(0, int(2*dead.QueueTTL/µs)).Draw(t, "held for")) * µs)
		l.ok(l.release("a", 0))
		free := l.now
		for {
			held := heldOf(l.acquire(mutex("b")))
			if held == nil {
				break
			}
			l.sleep(held.RetryAfter)
		}
		if cost := free.Until(l.now); cost > max(0, free.Until(lapses)) {
			t.Fatalf("cost %v, and %v of the place was left", cost, free.Until(lapses))
		}
	})
}

// Among waiters that stay and do not force, the order of grants is the order of arrival.
func TestGrantsComeInTheOrderOfArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, choose := newLab(t), drawing(t)
		var arrived, served []string
		for i := range rapid.IntRange(1, 30).Draw(t, "clients") {
			who := string(rune('A' + i))
			c := claimOf(choose)
			c.Token, c.Owner.Client, c.Force, c.Queue, c.TTL, c.QueueTTL = tokenOf(who), who, false, true, time.Hour, time.Hour
			c.Above = nil
			arrived = append(arrived, who)
			_, _ = l.acquire(&c)
			for n := len(l.e.Holders); n > 0 && choose("release", 3) == 0; n = len(l.e.Holders) {
				l.ok(l.release(whose(l.e.Holders[choose("who", n)].Token), 0))
			}
			served = append(served, newcomers(l, served)...)
		}
		for len(l.e.Holders) > 0 {
			l.ok(l.release(whose(l.e.Holders[0].Token), 0))
			served = append(served, newcomers(l, served)...)
		}
		// A client may be granted and released between two looks, so only the order is
		// compared.
		last := -1
		for _, who := range served {
			i := slices.Index(arrived, who)
			if i < last {
				t.Fatalf("arrived as %v, served as %v", arrived, served)
			}
			last = i
		}
		l.state("|")
	})
}

// FuzzOperations reads a sequence of operations from the bytes. The lab checks the laws
// at every step, and the model knows every answer.
func FuzzOperations(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("\x01\x00\x00\x01\x01\x00\x00\x00\x01\x00\x01\x01\x01\x00\x00\x00\x06\x00\x00"))
	f.Add([]byte("\x01\x01\x00\x01\x01\x00\x00\x00\x01\x01\x01\x01\x01\x00\x00\x00\x01\x00\x02\x01\x01\x00\x00\x00\x00\x00\x08\x00\x00\x06\x00\x00"))
	f.Add(bytes.Repeat([]byte{1, 5, 3, 2, 4, 0, 6, 8, 2, 7}, 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1024 {
			return // the lab checks the entry after each step, so long inputs only take long
		}
		choose, left := reading(b)
		l, m := newLab(t), &model{}
		for left() > 0 {
			o := l.next(choose, true)
			if o.what == "forget" {
				continue
			}
			if got, want := l.do(o), m.do(l.now, o); got != want {
				t.Fatalf("%v\nthe entry says: %s\nthe model says: %s", o, got, want)
			}
		}
	})
}

// In each case the answers and the signals are the model's.
func TestTheEntryAnswersAsTheModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, m, choose := newLab(t), &model{}, drawing(t)
		var story []string
		for range steps(t) {
			o := l.next(choose, true)
			if o.what == "forget" {
				continue // the model forgets nothing
			}
			story = append(story, o.String())
			if got, want := l.do(o), m.do(l.now, o); got != want {
				t.Fatalf("%s\nthe entry says: %s\nthe model says: %s", strings.Join(story, "\n"), got, want)
			}
			if got, want := l.e.Public(l.now, "job"), m.entry(l.now); o.what != "sleep" && !reflect.DeepEqual(got, want) {
				t.Fatalf("%s\nthe entry shows: %+v\nthe model shows: %+v", strings.Join(story, "\n"), got, want)
			}
		}
	})
}
