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
func (fx *fixture) mark(who string, d time.Duration) (isKnown, ok bool) {
	fx.t.Helper()
	return fx.entry.Mark(fx.now, locktable.Mark{Token: tokenOf(who), Inbox: who}, d)
}

func TestMarks(t *testing.T) {
	runEach(t, map[string]func(fx *fixture){
		"EachChangeSignalsEachWatch": func(fx *fixture) {
			fx.mark("x", time.Minute)
			fx.mark("y", time.Minute)
			g := fx.wantGranted(mutex("a"))
			fx.wantSignals("changed x, changed y")
			fx.wantHeld(mutex("b"))
			fx.wantSignals("changed x, changed y")
			fx.wantNoError(fx.renewRef(driver.LeaseRef{Token: tokenOf("a"), TTL: ttl, Value: []byte("v")}))
			fx.wantSignals("changed x, changed y")
			fx.wantNoError(fx.breakLease(g.Fence, 0, "boss"))
			fx.wantSignals("lost a, granted b, changed x, changed y")
			fx.wantNoError(fx.release("b", 0))
			fx.wantSignals("changed x, changed y")
			fx.wantGranted(mutex("c"))
			_, err := fx.entry.Raise(fx.now, &driver.LeaseRef{Token: tokenOf("c")}, fx.entry.Fence+5)
			fx.wantNoError(err)
			fx.wantSignals("changed x, changed y")
		},
		"RenewalsAndRepeatedClaimsAreNotSignaled": func(fx *fixture) {
			fx.mark("x", time.Minute)
			fx.wantGranted(mutex("a"))
			fx.wantHeld(mutex("b"))
			fx.sleep(sec)
			fx.wantNoError(fx.renew("a", ttl))
			fx.wantSignals("")
			fx.wantHeld(mutex("b"))
			fx.wantSignals("")
			fx.wantHeld(try(mutex("c")))
			fx.wantSignals("")
		},
		"AMarkThatFindsAnExpirySignalsIt": func(fx *fixture) {
			fx.wantGranted(mutex("a"))
			fx.mark("x", time.Minute)
			fx.wantSignals("")
			fx.sleep(ttl)
			isKnown, ok := fx.mark("x", time.Minute)
			equal(fx.t, "known", isKnown, true)
			equal(fx.t, "ok", ok, true)
			fx.wantSignals("changed x")
		},
		"RefusesSignalsAnExpiryOnce": func(fx *fixture) {
			fx.wantGranted(with(mutex("a"), func(c *driver.Claim) { c.TTL = sec }))
			fx.wantHeld(mutex("b"))
			fx.mark("x", time.Minute)
			fx.sleep(sec)
			if fx.entry.Refuses(fx.now, try(mutex("c"))) == nil {
				fx.t.Fatalf("c is not refused")
			}
			fx.wantSignals("granted b, changed x")
			if fx.entry.Refuses(fx.now, try(mutex("c"))) == nil {
				fx.t.Fatalf("c is not refused the second time")
			}
			fx.wantSignals("")
		},
		"AMarkExpires": func(fx *fixture) {
			fx.mark("x", sec)
			fx.mark("y", 2*sec)
			fx.sleep(sec)
			fx.wantGranted(mutex("a"))
			fx.wantSignals("changed y")
			equal(fx.t, "marks", len(fx.entry.Marks), 1)
			fx.sleep(sec)
			fx.wantNoError(fx.release("a", 0))
			fx.wantSignals("")
			equal(fx.t, "marks", len(fx.entry.Marks), 0)
			isKnown, _ := fx.mark("x", sec)
			equal(fx.t, "known after its end", isKnown, false)
		},
		"TheNumberOfMarksIsLimited": func(fx *fixture) {
			for i := range locktable.MaxMarks {
				if _, ok := fx.mark(fmt.Sprint(i), time.Minute); !ok {
					fx.t.Fatalf("no room for mark %d", i)
				}
			}
			_, ok := fx.mark("x", time.Minute)
			equal(fx.t, "ok", ok, false)
			_, ok = fx.mark("0", time.Minute)
			equal(fx.t, "ok for an existing mark", ok, true)
			fx.sleep(time.Minute)
			_, ok = fx.mark("x", time.Minute)
			equal(fx.t, "ok after the others expired", ok, true)
		},
		"AWatchedNameIsNotForgettable": func(fx *fixture) {
			fx.mark("x", time.Minute)
			equal(fx.t, "forgettable", fx.entry.Forgettable(fx.now, sec), false)
			equal(fx.t, "ends", fx.entry.Ends(), fx.now.Add(time.Minute))
			equal(fx.t, "forgettable at the end", fx.entry.Forgettable(fx.now.Add(time.Minute), sec), true)
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
