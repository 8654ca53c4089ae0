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

// The fixture checks the rules at every step of each property. Only
// TestTheEntryAnswersAsTheModelDoes sets the clock back, and never forgets the entry,
// because forgetting is safe only while the clock does not run back.
func TestTheRulesHoldIfIdleEntriesAreForgottenAndFencesRaised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fx, choose := newFixture(t), rapidChooser(t)
		raises := choose("raises", 2) == 1
		for range drawStepCount(t) {
			if o := fx.drawOp(choose, false); raises && choose("raise", 4) == 0 {
				_, _ = fx.raise(pick(choose, "who", clients...), max(1, fx.entry.Fence+uint64(choose("by", 5))-2))
			} else {
				fx.do(o)
			}
		}
	})
}

// An entry that is stored and decoded after every step behaves like one in memory.
func TestAStoredEntryBehavesLikeOneInMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inMemory, stored, choose := newFixture(t), newFixture(t), rapidChooser(t)
		for range drawStepCount(t) {
			o := inMemory.drawOp(choose, false)
			if want, got := inMemory.do(o), stored.do(o); got != want {
				t.Fatalf("%v\nin memory: %s\nstored:    %s", o, want, got)
			}
			back, err := locktable.Decode(stored.entry.Append(nil))
			noError(t, err)
			stored.entry = back
		}
	})
}

// A repeated claim gets the same answer, and changes nothing for other claims.
func TestARepeatedClaimGetsTheSameAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fx, choose := newFixture(t), rapidChooser(t)
		for range drawStepCount(t) {
			o := fx.drawOp(choose, false)
			// A claim that is refused for the value loses its place. The waiters behind
			// it may then have written a smaller value.
			if answer := fx.do(o); o.kind != "acquire" || strings.HasPrefix(answer, "refused for the value") {
				continue
			}
			c := o.claim
			before := string(fx.entry.Append(nil))
			first := answerText(fx.entry.Acquire(fx.now, &c, c.Owner.Client))
			again := answerText(fx.acquire(&c))
			if first != again || string(fx.entry.Append(nil)) != before || len(fx.entry.Signals) > 0 {
				t.Fatalf("%v\nis answered %s\nand then    %s", o, first, again)
			}
		}
	})
}

// Refuses returns the answer of Acquire, and does what Acquire does before it grants.
func TestRefusesReturnsTheAnswerOfAcquire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fx, choose := newFixture(t), rapidChooser(t)
		for range drawStepCount(t) {
			o := fx.drawOp(choose, false)
			if o.kind == "acquire" {
				c := o.claim
				c.Queue, c.QueueTTL, c.Force = false, 0, false
				whole, halves := clone(fx.entry), clone(fx.entry)
				want := answerText(whole.Acquire(fx.now, &c, ""))
				err := halves.Refuses(fx.now, &c)
				got, signals := answerText(driver.Grant{}, err), halves.Signals
				if err == nil {
					got = answerText(halves.Acquire(fx.now, &c, ""))
					signals = append(signals, halves.Signals...)
				}
				if got != want || !slices.Equal(signals, whole.Signals) || !bytes.Equal(halves.Append(nil), whole.Append(nil)) {
					t.Fatalf("%v\nat once: %s, %s\nin two:  %s, %s", o, want, entryText(whole), got, entryText(halves))
				}
			}
			fx.do(o)
		}
	})
}

// If all clients are dead except one that repeats its claim, the claim is granted as soon
// as all leases with their lock-delays, and all places with their possible grants, have
// ended.
func TestAClaimIsGrantedAfterAllOtherClientsDied(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fx, choose := newFixture(t), rapidChooser(t)
		for range drawStepCount(t) {
			fx.do(fx.drawOp(choose, false))
		}
		c := drawClaim(choose)
		c.Token, c.Owner.Client, c.Force, c.Queue, c.QueueTTL = tokenOf("last"), "last", false, true, time.Hour
		c.ValueBelow = nil
		held := heldOf(fx.acquire(&c))
		// A dead waiter may get the name, and holds it until its place would have
		// expired.
		deadline := max(fx.now, fx.entry.Closed)
		for _, h := range fx.entry.Holders {
			deadline = max(deadline, h.Expires.Add(h.LockDelay))
		}
		for _, w := range fx.entry.Queue {
			if w.Token != c.Token && w.Expires > fx.now {
				deadline = max(deadline, w.Expires.Add(w.LockDelay))
			}
		}
		for held != nil {
			if fx.now > deadline {
				t.Fatalf("still refused %v after the deadline: %v", deadline.Until(fx.now), held)
			}
			fx.sleep(held.RetryAfter) // RetryAfter must be enough
			held = heldOf(fx.acquire(&c))
		}
	})
}

// FuzzOperations reads a sequence of operations from the bytes. The fixture checks the
// rules at every step, and the model must give the same answers.
func FuzzOperations(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("\x01\x00\x00\x01\x01\x00\x00\x00\x01\x00\x01\x01\x01\x00\x00\x00\x06\x00\x00"))
	f.Add([]byte("\x01\x01\x00\x01\x01\x00\x00\x00\x01\x01\x01\x01\x01\x00\x00\x00\x01\x00\x02\x01\x01\x00\x00\x00\x00\x00\x08\x00\x00\x06\x00\x00"))
	f.Add(bytes.Repeat([]byte{1, 5, 3, 2, 4, 0, 6, 8, 2, 7}, 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1024 {
			return // long inputs only take long, because each step is checked
		}
		choose, left := byteChooser(b)
		fx, m := newFixture(t), &model{}
		for left() > 0 {
			o := fx.drawOp(choose, true)
			if o.kind == "forget" {
				continue
			}
			if got, want := fx.do(o), m.do(fx.now, o); got != want {
				t.Fatalf("%v\nthe entry says: %s\nthe model says: %s", o, got, want)
			}
		}
	})
}

// The entry gives the same answers, and sends the same signals, as the model.
func TestTheEntryAnswersAsTheModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fx, m, choose := newFixture(t), &model{}, rapidChooser(t)
		var ops []string
		for range drawStepCount(t) {
			o := fx.drawOp(choose, true)
			if o.kind == "forget" {
				continue // the model forgets nothing
			}
			ops = append(ops, o.String())
			if got, want := fx.do(o), m.do(fx.now, o); got != want {
				t.Fatalf("%s\nthe entry says: %s\nthe model says: %s", strings.Join(ops, "\n"), got, want)
			}
			if got, want := fx.entry.Public(fx.now, "job"), m.entry(fx.now); o.kind != "sleep" && !reflect.DeepEqual(got, want) {
				t.Fatalf("%s\nthe entry shows: %+v\nthe model shows: %+v", strings.Join(ops, "\n"), got, want)
			}
		}
	})
}
