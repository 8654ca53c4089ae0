package sqlitelock

import (
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Where no wake-up reaches a driver, it polls, and hears what the conformance suite sees
// with wake-ups.
func TestADriverThatNoWakeUpReachesHearsByPolling(t *testing.T) {
	path := file(t)
	a, b := deafen(open(t, path, nil)), deafen(open(t, path, nil))
	heard, changed := listen(t, b), make(chan struct{}, 100)
	t.Cleanup(b.Watch("seen", func() { changed <- struct{}{} }))
	tells := func(what string) {
		t.Helper()
		select {
		case <-changed:
		case <-time.After(hangTime):
			t.Fatalf("%s was not told", what)
		}
	}
	tells("the beginning")
	for len(changed) > 0 || rows(t, b) == 0 { // until the entry has the watch
		time.Sleep(10 * time.Millisecond)
		for len(changed) > 0 {
			<-changed
		}
	}
	for range 5 {
		seen, holder, waiter := mutex("seen"), mutex("job"), queued("job")
		gets(t, a, seen)
		tells("a grant")
		releases(t, a, seen)
		tells("a release")
		gets(t, a, holder)
		waits(t, b, waiter)
		releases(t, a, holder)
		s := hear(t, heard)
		if g := gets(t, b, waiter); s.Kind != driver.SignalGranted || s.Token != waiter.Token || s.Fences != 1 || s.Fence != g.Fence {
			t.Fatalf("heard %+v; the fence is %d", s, g.Fence)
		}
		releases(t, b, waiter)
	}
	c := mutex("other")
	g := gets(t, b, c)
	noError(t, a.Break(ctx, "other", g.Fence, 0, driver.Owner{Host: "desk"}))
	if s := hear(t, heard); s.Kind != driver.SignalLost || s.Token != c.Token {
		t.Fatalf("heard %+v", s)
	}
}

func TestASignalForTheSameDriverIsThereWhenTheCallReturns(t *testing.T) {
	d := open(t, file(t), nil)
	heard := listen(t, d)
	holder, waiter := mutex("job"), queued("job")
	gets(t, d, holder)
	waits(t, d, waiter)
	releases(t, d, holder)
	if len(heard) != 1 {
		t.Fatal("not heard at once")
	}
	if s := <-heard; s.Token != waiter.Token {
		t.Fatalf("heard %+v", s)
	}
	if n := ask(t, d, "SELECT count(*) FROM signals"); n != 0 {
		t.Fatalf("%d rows for nobody", n)
	}
}

func TestOldSignalsAreDropped(t *testing.T) {
	c := clock()
	path := file(t)
	a, b := open(t, path, &Options{now: c.Now}), open(t, path, &Options{now: c.Now})
	for i := range 10 {
		name := "job " + strconv.Itoa(i)
		holder := mutex(name)
		gets(t, a, holder)
		waits(t, b, queued(name))
		releases(t, a, holder)
	}
	signals := func() int64 { return ask(t, a, "SELECT count(*) FROM signals") }
	a.table.tidyEvery = 1
	gets(t, a, mutex("x"))
	if n := signals(); n != 10 {
		t.Fatalf("%d rows are left of ten new ones", n)
	}
	c.Advance(signalLife + time.Second)
	gets(t, a, mutex("y"))
	if n := signals(); n != 0 {
		t.Fatalf("%d old rows are left", n)
	}
}

// A change of a name without watchers writes no signal, and no driver polls for it.
func TestANameThatNobodyWatchesCostsNothing(t *testing.T) {
	path := file(t)
	a, b := open(t, path, nil), open(t, path, nil)
	stop := b.Watch("job", func() {})
	for rows(t, b) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	if !b.table.claims.Any(time.Now()) {
		t.Error("who watches does not look")
	}
	cycle(t, a, "other")
	if n := ask(t, a, "SELECT count(*) FROM signals"); n != 0 {
		t.Errorf("%d signals of what nobody watches", n)
	}
	cycle(t, a, "job")
	if n := ask(t, a, "SELECT count(*) FROM signals"); n != 2 {
		t.Errorf("%d signals of a cycle; want 2", n)
	}
	stop()
	for began := time.Now(); b.table.claims.Any(time.Now()); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > hangTime {
			t.Fatal("it looks for nobody")
		}
	}
}
