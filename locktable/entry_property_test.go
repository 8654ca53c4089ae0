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

// The lab checks the laws at every step of each property. The clock runs back in
// TestTheEntryAnswersAsTheModelDoes, where the entry is never forgotten: an entry may be
// forgotten as long as the clock does not run back.
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
		c.ValueBelow = nil
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
