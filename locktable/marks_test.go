package locktable_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// mark makes a client watch the name.
func (l *fixture) mark(who string, d time.Duration) (isKnown, ok bool) {
	l.t.Helper()
	return l.e.Mark(l.now, locktable.Mark{Token: tokenOf(who), Inbox: who}, d)
}

func TestMarks(t *testing.T) {
	runEach(t, map[string]func(l *fixture){
		"EachChangeSignalsEachWatch": func(l *fixture) {
			l.mark("x", time.Minute)
			l.mark("y", time.Minute)
			g := l.wantGranted(mutex("a"))
			l.wantSignals("changed x, changed y")
			l.wantHeld(mutex("b"))
			l.wantSignals("changed x, changed y")
			l.wantNoError(l.renewRef(driver.LeaseRef{Token: tokenOf("a"), TTL: ttl, Value: []byte("v")}))
			l.wantSignals("changed x, changed y")
			l.wantNoError(l.breakLease(g.Fence, 0, "boss"))
			l.wantSignals("lost a, granted b, changed x, changed y")
			l.wantNoError(l.release("b", 0))
			l.wantSignals("changed x, changed y")
			l.wantGranted(mutex("c"))
			_, err := l.e.Raise(l.now, &driver.LeaseRef{Token: tokenOf("c")}, l.e.Fence+5)
			l.wantNoError(err)
			l.wantSignals("changed x, changed y")
		},
		"RenewalsAndRepeatedClaimsAreNotSignaled": func(l *fixture) {
			l.mark("x", time.Minute)
			l.wantGranted(mutex("a"))
			l.wantHeld(mutex("b"))
			l.sleep(sec)
			l.wantNoError(l.renew("a", ttl))
			l.wantSignals("")
			l.wantHeld(mutex("b"))
			l.wantSignals("")
			l.wantHeld(try(mutex("c")))
			l.wantSignals("")
		},
		"AMarkThatFindsAnExpirySignalsIt": func(l *fixture) {
			l.wantGranted(mutex("a"))
			l.mark("x", time.Minute)
			l.wantSignals("")
			l.sleep(ttl)
			isKnown, ok := l.mark("x", time.Minute)
			equal(l.t, "known", isKnown, true)
			equal(l.t, "ok", ok, true)
			l.wantSignals("changed x")
		},
		"RefusesSignalsAnExpiryOnce": func(l *fixture) {
			l.wantGranted(with(mutex("a"), func(c *driver.Claim) { c.TTL = sec }))
			l.wantHeld(mutex("b"))
			l.mark("x", time.Minute)
			l.sleep(sec)
			if l.e.Refuses(l.now, try(mutex("c"))) == nil {
				l.t.Fatalf("c is not refused")
			}
			l.wantSignals("granted b, changed x")
			if l.e.Refuses(l.now, try(mutex("c"))) == nil {
				l.t.Fatalf("c is not refused the second time")
			}
			l.wantSignals("")
		},
		"AMarkExpires": func(l *fixture) {
			l.mark("x", sec)
			l.mark("y", 2*sec)
			l.sleep(sec)
			l.wantGranted(mutex("a"))
			l.wantSignals("changed y")
			equal(l.t, "marks", len(l.e.Marks), 1)
			l.sleep(sec)
			l.wantNoError(l.release("a", 0))
			l.wantSignals("")
			equal(l.t, "marks", len(l.e.Marks), 0)
			isKnown, _ := l.mark("x", sec)
			equal(l.t, "known after its end", isKnown, false)
		},
		"TheNumberOfMarksIsLimited": func(l *fixture) {
			for i := range locktable.MaxMarks {
				if _, ok := l.mark(fmt.Sprint(i), time.Minute); !ok {
					l.t.Fatalf("no room for mark %d", i)
				}
			}
			_, ok := l.mark("x", time.Minute)
			equal(l.t, "ok", ok, false)
			_, ok = l.mark("0", time.Minute)
			equal(l.t, "ok for an existing mark", ok, true)
			l.sleep(time.Minute)
			_, ok = l.mark("x", time.Minute)
			equal(l.t, "ok after the others expired", ok, true)
		},
		"AWatchedNameIsNotForgettable": func(l *fixture) {
			l.mark("x", time.Minute)
			equal(l.t, "forgettable", l.e.Forgettable(l.now, sec), false)
			equal(l.t, "ends", l.e.Ends(), l.now.Add(time.Minute))
			equal(l.t, "forgettable at the end", l.e.Forgettable(l.now.Add(time.Minute), sec), true)
		},
	})
}

// A name without marks is stored as it was by versions that had no marks.
func TestMarksAreStoredBehindAllOtherFields(t *testing.T) {
	e := fullEntry()
	without := e.Append(nil)
	e.Marks = []locktable.Mark{{Token: tokenOf("one!"), Inbox: "me", Until: 13}, {Token: tokenOf("two!"), Inbox: "", Until: -1}}
	stored := e.Append(nil)
	if want := string(without) + "\x02one!" + zeros + "\x02me\x1atwo!" + zeros + "\x00\x01"; string(stored) != want {
		t.Errorf("stored as %q\nwant      %q", stored, want)
	}
	if back, err := locktable.Decode(stored); err != nil || !reflect.DeepEqual(back, e) {
		t.Errorf("read as %+v, %v", back, err)
	}
	for n := len(without) + 1; n < len(stored); n++ {
		wantCorrupt(t, stored[:n])
	}
	wantCorrupt(t, append(stored, 0))
	many := e.Append(nil)[:len(without)]
	many = append(many, locktable.MaxMarks+1)
	wantCorrupt(t, append(many, bytes.Repeat(make([]byte, 18), locktable.MaxMarks+1)...))
}

// A step that finds expired places in rows signals that, even if it does nothing else.
func TestExpiredPlacesInRowsAreSignaled(t *testing.T) {
	r, now := newRowTable(t, 20, mutex)
	e, err := locktable.Decode(r.stored)
	noError(t, err)
	e.Mark(now, locktable.Mark{Token: tokenOf("x"), Inbox: "x"}, time.Hour)
	r.stored = e.Append(nil)
	step := func(f func(e *locktable.Entry)) *locktable.Entry {
		e, _, err := locktable.WithBounds(r.long, r.short, r, locktable.Step{Name: "job"}, r.stored, now, f)
		noError(t, err)
		r.stored = e.Append(nil)
		return e
	}
	nothing := func(*locktable.Entry) {}
	if e := step(nothing); len(e.Signals) != 0 {
		t.Errorf("%+v is sent without a change", e.Signals)
	}
	now = now.Add(wait)
	if e := step(nothing); len(e.Signals) != 1 || e.Signals[0].Kind != locktable.SignalChanged || e.Signals[0].Inbox != "x" {
		t.Errorf("signals are %+v; want one for the watch", e.Signals)
	}
}
