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

// mark makes a client watch.
func (l *lab) mark(who string, d time.Duration) (known, ok bool) {
	l.t.Helper()
	return l.e.Mark(l.now, locktable.Mark{Token: tokenOf(who), Inbox: who}, d)
}

func TestMarks(t *testing.T) {
	each(t, map[string]func(l *lab){
		"EachWhoWatchesIsToldOfEachChange": func(l *lab) {
			l.mark("x", time.Minute)
			l.mark("y", time.Minute)
			g := l.granted(mutex("a"))
			l.said("changed x, changed y")
			l.refused(mutex("b"))
			l.said("changed x, changed y")
			l.ok(l.renews(driver.LeaseRef{Token: tokenOf("a"), TTL: ttl, Value: []byte("v")}))
			l.said("changed x, changed y")
			l.ok(l.breaks(g.Fence, 0, "boss"))
			l.said("lost a, granted b, changed x, changed y")
			l.ok(l.release("b", 0))
			l.said("changed x, changed y")
			l.granted(mutex("c"))
			_, err := l.e.Raise(l.now, &driver.LeaseRef{Token: tokenOf("c")}, l.e.Fence+5)
			l.ok(err)
			l.said("changed x, changed y")
		},
		"NobodyIsToldOfRenewalsAndPlacesThatAreKept": func(l *lab) {
			l.mark("x", time.Minute)
			l.granted(mutex("a"))
			l.refused(mutex("b"))
			l.sleep(sec)
			l.ok(l.renew("a", ttl))
			l.said("")
			l.refused(mutex("b"))
			l.said("")
			l.refused(try(mutex("c")))
			l.said("")
		},
		"AnExpiryIsToldByWhoFindsIt": func(l *lab) {
			l.granted(mutex("a"))
			l.mark("x", time.Minute)
			l.said("")
			l.sleep(ttl)
			known, ok := l.mark("x", time.Minute)
			equal(l.t, "known", known, true)
			equal(l.t, "ok", ok, true)
			l.said("changed x")
		},
		"AnExpiryIsToldByWhoIsRefusedSeveral": func(l *lab) {
			l.granted(with(mutex("a"), func(c *driver.Claim) { c.TTL = sec }))
			l.refused(mutex("b"))
			l.mark("x", time.Minute)
			l.sleep(sec)
			if l.e.Refuses(l.now, try(mutex("c"))) == nil {
				l.t.Fatalf("nobody is in the way of c")
			}
			l.said("granted b, changed x")
			if l.e.Refuses(l.now, try(mutex("c"))) == nil {
				l.t.Fatalf("nobody is in the way of c any more")
			}
			l.said("")
		},
		"AMarkEndsByItself": func(l *lab) {
			l.mark("x", sec)
			l.mark("y", 2*sec)
			l.sleep(sec)
			l.granted(mutex("a"))
			l.said("changed y")
			equal(l.t, "marks", len(l.e.Marks), 1)
			l.sleep(sec)
			l.ok(l.release("a", 0))
			l.said("")
			equal(l.t, "marks", len(l.e.Marks), 0)
			known, _ := l.mark("x", sec)
			equal(l.t, "known after its end", known, false)
		},
		"ThereIsNoRoomForAnyNumber": func(l *lab) {
			for i := range locktable.MaxMarks {
				if _, ok := l.mark(fmt.Sprint(i), time.Minute); !ok {
					l.t.Fatalf("no room for mark %d", i)
				}
			}
			_, ok := l.mark("x", time.Minute)
			equal(l.t, "ok", ok, false)
			_, ok = l.mark("0", time.Minute)
			equal(l.t, "ok for one that is there", ok, true)
			l.sleep(time.Minute)
			_, ok = l.mark("x", time.Minute)
			equal(l.t, "ok when the others have ended", ok, true)
		},
		"ANameThatIsWatchedIsNotForgotten": func(l *lab) {
			l.mark("x", time.Minute)
			equal(l.t, "forgettable", l.e.Forgettable(l.now, sec), false)
			equal(l.t, "ends", l.e.Ends(), l.now.Add(time.Minute))
			equal(l.t, "forgettable at the end", l.e.Forgettable(l.now.Add(time.Minute), sec), true)
		},
	})
}

// A name without watches is stored as it was before there were marks.
func TestMarksAreStoredBehindAllElse(t *testing.T) {
	e := full()
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
		corrupt(t, stored[:n])
	}
	corrupt(t, append(stored, 0))
	many := e.Append(nil)[:len(without)]
	many = append(many, locktable.MaxMarks+1)
	corrupt(t, append(many, bytes.Repeat(make([]byte, 18), locktable.MaxMarks+1)...))
}

func TestOnlyWhatIsForWhoWatchesIsAChange(t *testing.T) {
	for kind := range locktable.SignalChanged + 3 {
		if is := locktable.IsChange(driver.Signal{Kind: kind}); is != (kind == locktable.SignalChanged) {
			t.Errorf("signal %d is a change: %v", kind, is)
		}
	}
}

// A step that finds that places in rows have lapsed reports that, even if it does nothing
// else.
func TestPlacesThatLapseApartAreTold(t *testing.T) {
	r, now := lined(t, 20, mutex)
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
		t.Errorf("%+v was told of nothing", e.Signals)
	}
	now = now.Add(wait)
	if e := step(nothing); len(e.Signals) != 1 || e.Signals[0].Kind != locktable.SignalChanged || e.Signals[0].Inbox != "x" {
		t.Errorf("signals are %+v; want one for who watches", e.Signals)
	}
}
