package servertest

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Watch watches a name until the test is over. It returns when the watch has begun, or
// has failed to. tells waits until the driver reports a change, and drops all reports
// that come with it.
func Watch(tb TB, d driver.Watcher, name string) (tells func(what string)) {
	tb.Helper()
	told := make(chan struct{}, 1000)
	tb.Cleanup(d.Watch(name, func() { told <- struct{}{} }))
	tells = func(what string) {
		tb.Helper()
		select {
		case <-told:
		case <-time.After(2 * time.Minute): // only a hang takes so long
			tb.Fatalf("%s was not told", what)
		}
		for quiet := false; !quiet; {
			select {
			case <-told:
			case <-time.After(200 * time.Millisecond):
				quiet = true
			}
		}
	}
	tells("the beginning")
	return tells
}
