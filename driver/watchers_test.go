package driver_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

func TestWatchersHearOfTheirName(t *testing.T) {
	var w driver.Watchers
	if w.Notify("x"); w.Any() {
		t.Error("somebody watches before anybody does")
	}
	told := map[string]int{}
	count := func(who string) func() { return func() { told[who]++ } }
	stop1 := w.Watch("x", count("first"))
	stop2 := w.Watch("x", count("second"))
	stop3 := w.Watch("y", count("other"))
	w.Notify("x")
	stop1()
	stop1() // twice is no harm
	w.Notify("x")
	w.NotifyAll()
	if told["first"] != 1 || told["second"] != 3 || told["other"] != 1 {
		t.Errorf("told: %v; want the first once, the second three times, and the other once", told)
	}
	if names := slices.Sorted(slices.Values(w.Names())); !slices.Equal(names, []string{"x", "y"}) || !w.Any() {
		t.Errorf("watched: %q; want x and y", names)
	}
	stop2()
	stop3()
	if w.NotifyAll(); w.Any() || told["second"] != 3 || told["other"] != 1 {
		t.Errorf("told after the end: %v", told)
	}
}

func TestAWatcherMayStopAndBeginWhileItIsTold(t *testing.T) {
	var w driver.Watchers
	told := 0
	var stop func()
	stop = w.Watch("x", func() {
		stop()
		told++
		w.Watch("x", func() { told += 10 })
	})
	w.Notify("x")
	if told != 1 {
		t.Errorf("told %d, want the first one once", told)
	}
	if w.Notify("x"); told != 11 {
		t.Errorf("told %d, want the second one once", told)
	}
}

// A backend follows each name once, however many watch it, and as long as one does.
func TestANameIsFollowedWhileSomebodyWatchesIt(t *testing.T) {
	var said []string
	var changed func()
	var w driver.Watchers
	w.OnFirstWatch(func(name string, f func()) func() {
		said, changed = append(said, "begin "+name), f
		return func() { said = append(said, "end "+name) }
	})
	told := 0
	tell := func() { told++ }
	stop1, stop2 := w.Watch("x", tell), w.Watch("x", tell)
	changed()
	stop1()
	stop2()
	stop2()
	w.Watch("x", tell)
	w.Close()
	w.Close()
	changed()
	w.Watch("x", tell)()
	if got, want := strings.Join(said, ", "), "begin x, end x, begin x, end x"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	if told != 2 {
		t.Errorf("told %d times, want both once", told)
	}
}
