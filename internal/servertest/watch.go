package servertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
)

// Watch watches a name until the test ends. It returns when the watch has begun.
// waitChange waits until the driver reports a change, and drops the reports that follow
// at once.
func Watch(tb TB, d driver.Watcher, name string) (waitChange func(what string)) {
	tb.Helper()
	changes := make(chan struct{}, 1000)
	tb.Cleanup(d.Watch(name, func() { changes <- struct{}{} }))
	waitChange = func(what string) {
		tb.Helper()
		select {
		case <-changes:
		case <-time.After(2 * time.Minute): // only a hang takes so long
			tb.Fatalf("the watch did not report %s", what)
		}
		for quiet := false; !quiet; {
			select {
			case <-changes:
			case <-time.After(200 * time.Millisecond):
				quiet = true
			}
		}
	}
	waitChange("the beginning")
	return waitChange
}

// WatchOutlives checks that a watch still reports changes after each fault, for example a
// restart of the server.
func WatchOutlives(tb TB, d, watcher driver.Driver, faults ...func()) {
	tb.Helper()
	w, _ := driver.As[driver.Watcher](watcher)
	waitChange := Watch(tb, w, "job")
	for _, fault := range faults {
		fault()
		c := Mutex("job")
		acquireWhenFree(tb, d, c)
		waitChange("the fault or a grant")
		mustSucceed(tb, "Release", func() error {
			err := d.Release(context.Background(), Lease(c))
			if errors.Is(err, driver.ErrNoSuchLease) { // an earlier try may have released it
				err = nil
			}
			return err
		})
		waitChange("a release")
	}
	basictest.Eventually(tb, "PushesChanges", func() bool { return watcher.Properties().PushesChanges })
}
