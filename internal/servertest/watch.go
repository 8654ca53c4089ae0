package servertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
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

// WatchOutlives checks that a watch reports changes also after a fault, such as a restart
// of the server.
func WatchOutlives(tb TB, d, watcher driver.Driver, happens ...func()) {
	tb.Helper()
	w, _ := driver.As[driver.Watcher](watcher)
	tells := Watch(tb, w, "job")
	for _, fault := range happens {
		fault()
		c := Mutex("job")
		untilFree(tb, d, c)
		tells("a grant, or what may have happened meanwhile")
		insist(tb, "Release", func() error {
			err := d.Release(context.Background(), Lease(c))
			if errors.Is(err, driver.ErrNoSuchLease) { // an earlier try may have released it
				err = nil
			}
			return err
		})
		tells("a release")
	}
	basictest.Eventually(tb, "PushesChanges", func() bool { return watcher.Properties().PushesChanges })
}
