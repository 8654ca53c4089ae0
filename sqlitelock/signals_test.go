package sqlitelock

import (
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestADriverWithoutWakeUpsPollsForSignals(t *testing.T) {
	t.Parallel() // each change of the watch takes 200 ms
	path := newPath(t)
	a, b := withoutWakeUps(open(t, path, nil)), withoutWakeUps(open(t, path, nil))
	signals, awaitChange := listen(t, b), servertest.Watch(t, b, "seen")
	eventually(t, "the entry has the watch", func() bool { return countNames(t, b) > 0 })
	for range 5 {
		seen, holder, waiter := mutex("seen"), mutex("job"), queued("job")
		gets(t, a, seen)
		awaitChange("a grant")
		releases(t, a, seen)
		awaitChange("a release")
		gets(t, a, holder)
		isRefused(t, b, waiter)
		releases(t, a, holder)
		s := wantSignal(t, signals, driver.SignalGranted, waiter.Token)
		if g := gets(t, b, waiter); s.Fence != g.Fence || s.Fences != 1 {
			t.Errorf("got the signal %+v; want the fence %d", s, g.Fence)
		}
		releases(t, b, waiter)
	}
	c := mutex("other")
	g := gets(t, b, c)
	noError(t, a.Break(ctx, "other", g.Fence, 0, driver.Owner{Host: "desk"}))
	wantSignal(t, signals, driver.SignalLost, c.Token)
}

func TestASignalForTheSameDriverArrivesBeforeTheCallReturns(t *testing.T) {
	d := open(t, newPath(t), nil)
	signals := listen(t, d)
	holder, waiter := mutex("job"), queued("job")
	gets(t, d, holder)
	isRefused(t, d, waiter)
	releases(t, d, holder)
	if len(signals) != 1 || (<-signals).Token != waiter.Token {
		t.Fatal("the waiter's signal was not delivered before Release returned")
	}
	if n := queryInt(t, d, "SELECT count(*) FROM signals"); n != 0 {
		t.Fatalf("%d rows for a signal to the same driver, want none", n)
	}
}

func TestOldSignalsAreDropped(t *testing.T) {
	c := clock()
	path := newPath(t)
	a, b := open(t, path, &Options{now: c.Now}), open(t, path, &Options{now: c.Now})
	for i := range 10 {
		holder := mutex("job " + strconv.Itoa(i))
		gets(t, a, holder)
		isRefused(t, b, queued(holder.Name))
		releases(t, a, holder)
	}
	a.table.tidyEvery = 1
	for i, want := range []int64{10, 0} {
		gets(t, a, mutex(strconv.Itoa(i)))
		if n := queryInt(t, a, "SELECT count(*) FROM signals"); n != want {
			t.Fatalf("%d rows are left; want %d", n, want)
		}
		c.Advance(signalLifetime + time.Second)
	}
}

// A change of a name without watchers writes no signal, and no driver polls for it.
func TestANameWithoutWatchersSendsNoSignals(t *testing.T) {
	path := newPath(t)
	a, b := open(t, path, nil), open(t, path, nil)
	stop := b.Watch("job", func() {})
	eventually(t, "the entry has the watch", func() bool { return countNames(t, b) > 0 })
	if !b.table.claims.Any(time.Now()) {
		t.Error("a driver that watches does not poll")
	}
	cycle(t, a, "other")
	if n := queryInt(t, a, "SELECT count(*) FROM signals"); n != 0 {
		t.Errorf("%d signals for a name without watchers, want none", n)
	}
	cycle(t, a, "job")
	if n := queryInt(t, a, "SELECT count(*) FROM signals"); n != 2 {
		t.Errorf("%d signals of a cycle; want 2", n)
	}
	stop()
	eventually(t, "without a watch the driver does not poll", func() bool { return !b.table.claims.Any(time.Now()) })
}
