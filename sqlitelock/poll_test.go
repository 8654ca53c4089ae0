package sqlitelock

import (
	"runtime"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A process that waits for one name and ends has no second hand-over, from which to learn
// that it hears no bell.
func TestAWaiterLooksOftenFromTheStartUnlessItIsWithinEarshot(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*Driver) *Driver
		eager   bool
	}{
		"of the holder":     {func(d *Driver) *Driver { return d }, runtime.GOOS != "linux"},
		"of nobody":         {deafen, true},
		"of one of several": {func(d *Driver) *Driver { return d }, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			a, b := test.prepare(open(t, path, nil)), open(t, path, nil)
			shared := func() driver.Claim {
				c := mutex("job")
				c.Weight = 1
				return c
			}
			gets(t, a, shared())
			if name == "of one of several" {
				gets(t, deafen(open(t, path, nil)), shared())
			}
			waits(t, b, queued("job"))
			if p := b.table.poller.pace(b.table.now(), 4*time.Millisecond); (p < slowPace) != test.eager {
				t.Errorf("it looks every %v", p)
			}
		})
	}
}

func TestADriverLooksOnlyForWhatItAwaits(t *testing.T) {
	const fast = 4 * time.Millisecond
	c := clock()
	path := file(t)
	a, b := open(t, path, &Options{Now: c.Now}), deafen(open(t, path, &Options{Now: c.Now}))
	pace := func() time.Duration {
		w := b.table.poller
		w.mu.Lock()
		w.joined = time.Now().Add(-eagerFor) // it has waited for some time
		w.pruned = time.Time{}
		w.mu.Unlock()
		return w.pace(b.table.now(), fast)
	}
	if p := pace(); p != 0 {
		t.Fatalf("with nothing to wait for: %v", p)
	}
	holder, waiter := mutex("job"), queued("job")
	gets(t, a, holder)
	waits(t, b, waiter)
	if p := pace(); p != fast {
		t.Fatalf("while it waits: %v", p)
	}
	if err := b.Release(ctx, lease(waiter)); err != nil {
		t.Fatal(err)
	}
	if p := pace(); p != 0 {
		t.Fatalf("after it left the queue: %v", p)
	}
	waits(t, b, waiter)
	c.Advance(waiter.QueueTTL)
	if p := pace(); p != 0 {
		t.Fatalf("after its place lapsed: %v", p)
	}
	waits(t, b, waiter)
	releases(t, a, holder)
	gets(t, b, waiter)
	if p := pace(); p != slowPace {
		t.Fatalf("while it holds: %v", p)
	}
	c.Advance(waiter.TTL)
	if p := pace(); p != 0 {
		t.Fatalf("after its lease ended: %v", p)
	}
}

func TestWhoHearsTheDoorbellLooksSeldom(t *testing.T) {
	w := newPoller()
	w.hears = true
	token := driver.NewToken()
	w.apply([]place{{token: token, lapses: 100}}, 0)
	if p := w.pace(1, 4*time.Millisecond); p != slowPace {
		t.Fatalf("it hears: %v", p)
	}
	w.heard([]driver.Signal{{Token: driver.NewToken()}}, false)
	if p := w.pace(1, 4*time.Millisecond); p != eagerPace {
		t.Fatalf("a signal came without a ring: %v", p)
	}
	w.joined = w.joined.Add(-restless)
	if p := w.pace(1, 4*time.Millisecond); p != 8*time.Millisecond {
		t.Fatalf("after a second: %v", p)
	}
	w.heard(nil, true)
	if p := w.pace(1, 4*time.Millisecond); p != slowPace {
		t.Fatalf("it rang again: %v", p)
	}
	w.heard([]driver.Signal{{Token: token}}, true)
	if p := w.pace(99, 4*time.Millisecond); p != slowPace {
		t.Fatalf("it was granted, and may be broken: %v", p)
	}
	if p := w.pace(100, 4*time.Millisecond); p != 0 {
		t.Fatalf("that ended: %v", p)
	}
}

// A signal for who watches may come from anybody, and says nothing of the bell of those
// that we wait for.
func TestAChangeThatIsWatchedSaysNothingOfTheDoorbell(t *testing.T) {
	e, now := &locktable.Entry{}, locktable.At(time.Now())
	e.Mark(now, locktable.Mark{Token: driver.NewToken(), Inbox: "me"}, time.Minute)
	c := mutex("job")
	if _, err := e.Acquire(now, &c, "other"); err != nil || len(e.Signals) != 1 {
		t.Fatalf("%v, with the signals %+v, want one", err, e.Signals)
	}
	for _, hears := range []bool{true, false} {
		w := newPoller()
		w.hears = hears
		if w.heard([]driver.Signal{e.Signals[0].Signal}, !hears); w.hears != hears {
			t.Errorf("it hears the bell: %v; want %v as before", w.hears, hears)
		}
	}
}

func TestKeepingAPlaceIsNotTakingOne(t *testing.T) {
	w := newPoller()
	token := driver.NewToken()
	w.apply([]place{{token: token, lapses: 100}}, 0)
	<-w.hurry
	joined := w.joined
	w.apply([]place{{token: token}, {token: token, lapses: 200}}, 0)
	if w.joined != joined || len(w.hurry) > 0 {
		t.Fatal("a keep-alive counts as new")
	}
	if w.places[token] != 200 {
		t.Fatal("the place was not kept")
	}
}
