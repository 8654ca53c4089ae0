package driver_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

func TestNotifyCallsTheWatchesOfAName(t *testing.T) {
	var w driver.Watchers
	if w.Notify("x"); w.Any() {
		t.Error("Any is true without a watch")
	}
	calls := map[string]int{}
	count := func(watch string) func() { return func() { calls[watch]++ } }
	stop1 := w.Watch("x", count("first"))
	stop2 := w.Watch("x", count("second"))
	stop3 := w.Watch("y", count("other"))
	w.Notify("x")
	stop1()
	stop1() // a second call does nothing
	w.Notify("x")
	w.NotifyAll()
	if calls["first"] != 1 || calls["second"] != 3 || calls["other"] != 1 {
		t.Errorf("calls: %v; want first once, second three times, and other once", calls)
	}
	if names := slices.Sorted(slices.Values(w.Names())); !slices.Equal(names, []string{"x", "y"}) || !w.Any() {
		t.Errorf("watched: %q; want x and y", names)
	}
	stop2()
	stop3()
	if w.NotifyAll(); w.Any() || calls["second"] != 3 || calls["other"] != 1 {
		t.Errorf("after the last stop Any is %v, and the calls are %v; want no more calls", w.Any(), calls)
	}
}

func TestAWatchMayStopAndBeginAnotherDuringNotify(t *testing.T) {
	var w driver.Watchers
	calls := 0
	var stop func()
	stop = w.Watch("x", func() {
		stop()
		calls++
		w.Watch("x", func() { calls += 10 })
	})
	w.Notify("x")
	if calls != 1 {
		t.Errorf("calls is %d, want 1 from the first watch", calls)
	}
	if w.Notify("x"); calls != 11 {
		t.Errorf("calls is %d, want 10 more from the second watch", calls)
	}
}

// follow is called once for each watched name, and stop after its last watch.
func TestANameIsFollowedOnceWhileItHasWatches(t *testing.T) {
	var events []string
	var changed func()
	var w driver.Watchers
	w.OnFirstWatch(func(name string, f func()) func() {
		events, changed = append(events, "begin "+name), f
		return func() { events = append(events, "end "+name) }
	})
	calls := 0
	count := func() { calls++ }
	stop1, stop2 := w.Watch("x", count), w.Watch("x", count)
	changed()
	stop1()
	stop2()
	stop2()
	w.Watch("x", count)
	w.Close()
	w.Close()
	changed()
	w.Watch("x", count)()
	if got, want := strings.Join(events, ", "), "begin x, end x, begin x, end x"; got != want {
		t.Errorf("the name was followed: %s; want %s", got, want)
	}
	if calls != 2 {
		t.Errorf("%d calls, want one of each of the first two watches", calls)
	}
}
