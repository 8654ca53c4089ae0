package drivertest

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// testWatch runs if Properties().PushesChanges is true. As with signals, only speed may
// depend on reports.
func testWatch(s *suite) {
	s.test("EachChangeIsReported", func(k *kit) {
		watched := k.watch(k.name)
		c, waiter, behind := k.mutex(), k.mutex(queue(long)), k.mutex(queue(long))
		g := k.a.wantGranted(c)
		watched.wantReport("a grant")
		k.a.mustRenewWith(withValue(c, "v"))
		watched.wantReport("a value")
		k.a.wantPlace(waiter, 1)
		watched.wantReport("a waiter")
		k.a.wantPlace(behind, 2)
		watched.wantReport("a waiter behind another")
		k.a.mustRelease(behind)
		watched.wantReport("a waiter behind another that left")
		k.a.mustRelease(waiter)
		watched.wantReport("a waiter that left")
		if s.canBreak {
			k.a.mustBreak(g.Fence, 0, driver.Owner{})
			watched.wantReport("a break")
			k.a.wantGranted(c)
			watched.wantReport("a grant after that")
		}
		k.a.wantGranted(k.mutex(force))
		watched.wantReport("a grant by force")
	})

	s.test("EachChangeOfASharedNameIsReported", func(k *kit) {
		watched := k.watch(k.name)
		one, two, writer := k.reader(), k.reader(), k.mutex(queue(long))
		k.a.wantGranted(one)
		watched.wantReport("a reader")
		k.a.wantGranted(two)
		watched.wantReport("a second reader")
		k.a.wantPlace(writer, 1)
		watched.wantReport("a writer that waits")
		k.a.mustRelease(one)
		watched.wantReport("a reader that left")
		k.a.mustRelease(two)
		watched.wantReport("the grant to the writer")
		k.a.mustRelease(writer)
		watched.wantReport("a release")
	})

	s.test("TheClientsOwnChangesAreReported", func(k *kit) {
		watched, c := k.watch(k.name), k.mutex()
		k.b.wantGranted(c)
		watched.wantReport("its own grant")
		k.b.mustRelease(c)
		watched.wantReport("its own release")
	})

	s.test("AnExpiryIsReportedWhenItIsFound", func(k *kit) {
		watched := k.watch(k.name)
		k.a.wantGranted(k.mutex(ttl(k.unit)))
		watched.wantReport("a grant")
		k.advancePast(k.unit)
		watched.discardCalls()
		k.a.wantGranted(k.mutex())
		watched.wantReport("the next grant")
	})

	s.test("AChangeBeforeTheWatchHasBegunIsReported", func(k *kit) {
		watched := k.watchFrom(k.b, k.name)
		k.a.wantGranted(k.mutex())
		watched.wantReport("a change just after Watch")
	})

	s.test("RenewalsAreNotReported", func(k *kit) {
		watched := k.watch(k.name)
		c, waiter := k.mutex(), k.mutex(queue(long))
		k.a.wantGranted(c)
		k.a.wantPlace(waiter, 1)
		watched.wantReport("a grant")
		k.a.mustRenew(c)
		k.a.wantPlace(waiter, 1)
		watched.wantNoReport()
		k.a.mustRelease(c)
		watched.wantReport("a release")
	})

	s.test("OtherNamesAreNotReported", func(k *kit) {
		watched, other := k.watch(k.name), k.watch(k.name+"/other")
		watched.discardCalls()
		k.a.wantGranted(k.mutex(named(k.name + "/other")))
		other.wantReport("the change of its name")
		watched.wantNoReport()
	})

	s.test("AStoppedWatchReportsNothing", func(k *kit) {
		stopped, watched := k.watch(k.name), k.watch(k.name)
		stopped.stop()
		stopped.stop() // a second call does nothing
		stopped.discardCalls()
		k.a.wantGranted(k.mutex())
		watched.wantReport("a change to the other watch")
		stopped.wantNoReport()
	})

	s.test("AWatchMayBeginAgain", func(k *kit) {
		for range 3 {
			watched, c := k.watch(k.name), k.mutex()
			k.a.wantGranted(c)
			watched.wantReport("a grant")
			watched.stop()
			k.a.mustRelease(c)
		}
	})

	s.test("NothingIsReportedAfterClose", func(k *kit) {
		d := k.open()
		closed, watched := k.watchFrom(d, k.name), k.watch(k.name)
		k.mustClose(d)
		closed.discardCalls()
		k.a.wantGranted(k.mutex())
		watched.wantReport("a change to the open client")
		closed.wantNoReport()
		closed.stop() // does nothing
		k.watchFrom(d, k.name).stop()
	})
}

// A watchCall is one call of Watch.
type watchCall struct {
	k     *kit
	d     *client
	calls chan struct{}
	stop  func()
}

// watch watches a name with the second client, and waits until changes are reported,
// because a driver may subscribe after Watch has returned.
func (k *kit) watch(name string) *watchCall {
	k.Helper()
	w := k.watchFrom(k.b, name)
	change := func() {
		c := k.mutex(named(name))
		k.a.wantGranted(c)
		k.a.mustRelease(c)
	}
	change()
	w.await("a change", change)
	return w
}

// watchFrom watches a name, and does not wait.
func (k *kit) watchFrom(d *client, name string) *watchCall {
	w := &watchCall{k: k, d: d, calls: make(chan struct{}, 1024)}
	w.stop = d.Driver.(driver.Watcher).Watch(name, func() {
		select {
		case w.calls <- struct{}{}:
		default:
		}
	})
	k.Cleanup(w.stop)
	return w
}

// wantReport waits until a change is reported, and discards the calls for it.
func (w *watchCall) wantReport(what string) {
	w.k.Helper()
	w.await(what, func() {})
}

// await calls again now and then, until a change is reported. While PushesChanges is
// false, no report is missing: the driver calls the watch when changes are reported
// again.
func (w *watchCall) await(what string, again func()) {
	w.k.Helper()
	for began := time.Now(); ; again() {
		select {
		case <-w.calls:
			w.discardCalls()
			return
		case <-time.After(w.k.suite.Patience / 10):
		}
		if time.Since(began) > w.k.suite.signalTimeout() && (w.d.Properties().PushesChanges || w.k.ctx.Err() != nil) {
			w.k.failMissing("%s was not reported", what)
		}
	}
}

// quietTime is the time without a call after which all calls for a change have arrived.
// With an injected clock the driver reports a change before the step returns, unless the
// harness sets ReportsLater.
const quietTime = 100 * time.Millisecond

func (w *watchCall) waitQuietTime() {
	w.k.Helper()
	if w.k.suite.Clock == nil || w.k.suite.ReportsLater {
		w.k.sleep(quietTime)
	}
}

// discardCalls discards calls until none comes within quietTime.
func (w *watchCall) discardCalls() {
	for {
		w.waitQuietTime()
		n := len(w.calls)
		if n == 0 {
			return
		}
		for range n {
			<-w.calls
		}
	}
}

// wantNoReport requires that no change was reported.
func (w *watchCall) wantNoReport() {
	w.k.Helper()
	w.waitQuietTime()
	if n := len(w.calls); n > 0 {
		w.k.Errorf("%d calls without a change of a watched name", n)
	}
}
