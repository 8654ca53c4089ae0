package drivertest

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// testWatch runs if Properties().PushesChanges says that changes are reported. As with
// signals, nothing may depend on them.
func testWatch(s *suite) {
	s.test("EachChangeIsReported", func(k *kit) {
		seen := k.watch(k.name)
		c, waiter, behind := k.mutex(), k.mutex(queue(long)), k.mutex(queue(long))
		g := k.a.wantGranted(c)
		seen.wantReport("a grant")
		k.a.mustRenewWith(withValue(c, "v"))
		seen.wantReport("a value")
		k.a.wantPlace(waiter, 1)
		seen.wantReport("a waiter")
		k.a.wantPlace(behind, 2)
		seen.wantReport("a waiter behind another")
		k.a.mustRelease(behind)
		seen.wantReport("a waiter behind another that left")
		k.a.mustRelease(waiter)
		seen.wantReport("a waiter that left")
		if s.canBreak {
			k.a.mustBreak(g.Fence, 0, driver.Owner{})
			seen.wantReport("a break")
			k.a.wantGranted(c)
			seen.wantReport("a grant after that")
		}
		k.a.wantGranted(k.mutex(force))
		seen.wantReport("a grant by force")
	})

	s.test("EachChangeOfASharedNameIsReported", func(k *kit) {
		seen := k.watch(k.name)
		one, two, writer := k.reader(), k.reader(), k.mutex(queue(long))
		k.a.wantGranted(one)
		seen.wantReport("a reader")
		k.a.wantGranted(two)
		seen.wantReport("a second reader")
		k.a.wantPlace(writer, 1)
		seen.wantReport("a writer that waits")
		k.a.mustRelease(one)
		seen.wantReport("a reader that left")
		k.a.mustRelease(two)
		seen.wantReport("the grant to the writer")
		k.a.mustRelease(writer)
		seen.wantReport("a release")
	})

	s.test("TheClientsOwnChangesAreReported", func(k *kit) {
		seen, c := k.watch(k.name), k.mutex()
		k.b.wantGranted(c)
		seen.wantReport("its own grant")
		k.b.mustRelease(c)
		seen.wantReport("its own release")
	})

	s.test("AnExpiryIsReportedWhenItIsFound", func(k *kit) {
		seen := k.watch(k.name)
		k.a.wantGranted(k.mutex(ttl(k.u)))
		seen.wantReport("a grant")
		k.advancePast(k.u)
		seen.settle()
		k.a.wantGranted(k.mutex())
		seen.wantReport("the next grant")
	})

	s.test("AChangeBeforeTheWatchHasBegunIsReported", func(k *kit) {
		seen := k.watchFrom(k.b, k.name)
		k.a.wantGranted(k.mutex())
		seen.wantReport("what came at once")
	})

	s.test("RenewalsAreNotReported", func(k *kit) {
		seen := k.watch(k.name)
		c, waiter := k.mutex(), k.mutex(queue(long))
		k.a.wantGranted(c)
		k.a.wantPlace(waiter, 1)
		seen.wantReport("a grant")
		k.a.mustRenew(c)
		k.a.wantPlace(waiter, 1)
		seen.wantNoReport()
		k.a.mustRelease(c)
		seen.wantReport("a release")
	})

	s.test("OtherNamesAreNotReported", func(k *kit) {
		seen, other := k.watch(k.name), k.watch(k.name+"/other")
		seen.settle()
		k.a.wantGranted(k.mutex(on(k.name + "/other")))
		other.wantReport("its own")
		seen.wantNoReport()
	})

	s.test("AStoppedWatchReportsNothing", func(k *kit) {
		stopped, seen := k.watch(k.name), k.watch(k.name)
		stopped.stop()
		stopped.stop() // a second call does nothing
		stopped.settle()
		k.a.wantGranted(k.mutex())
		seen.wantReport("who still watches")
		stopped.wantNoReport()
	})

	s.test("AWatchMayBeginAgain", func(k *kit) {
		for range 3 {
			seen, c := k.watch(k.name), k.mutex()
			k.a.wantGranted(c)
			seen.wantReport("a grant")
			seen.stop()
			k.a.mustRelease(c)
		}
	})

	s.test("NothingIsReportedAfterClose", func(k *kit) {
		d := k.open()
		closed, seen := k.watchFrom(d, k.name), k.watch(k.name)
		k.mustClose(d)
		closed.settle()
		k.a.wantGranted(k.mutex())
		seen.wantReport("who is still open")
		closed.wantNoReport()
		closed.stop() // it does nothing
		k.watchFrom(d, k.name).stop()
	})
}

// A watching is one call of Watch.
type watching struct {
	k    *kit
	d    *client
	told chan struct{}
	stop func()
}

// watch watches a name from the second client, and waits until changes are reported: a
// driver may begin to listen after Watch has returned.
func (k *kit) watch(name string) *watching {
	k.Helper()
	w := k.watchFrom(k.b, name)
	change := func() {
		c := k.mutex(on(name))
		k.a.wantGranted(c)
		k.a.mustRelease(c)
	}
	change()
	w.await("a change", change)
	return w
}

// watchFrom watches a name, and does not wait.
func (k *kit) watchFrom(d *client, name string) *watching {
	w := &watching{k: k, d: d, told: make(chan struct{}, 1024)}
	w.stop = d.Driver.(driver.Watcher).Watch(name, func() {
		select {
		case w.told <- struct{}{}:
		default:
		}
	})
	k.Cleanup(w.stop)
	return w
}

// tells waits until a change is reported, and takes the calls that come with it.
func (w *watching) wantReport(what string) {
	w.k.Helper()
	w.await(what, func() {})
}

// await calls again from time to time until a change is reported. While the driver's
// Properties say that changes are not reported, none is missing: the driver tells when
// they are reported again.
func (w *watching) await(what string, again func()) {
	w.k.Helper()
	for began := time.Now(); ; again() {
		select {
		case <-w.told:
			w.settle()
			return
		case <-time.After(w.k.s.Patience / 10):
		}
		if time.Since(began) > w.k.s.signalTimeout() && (w.d.Properties().PushesChanges || w.k.ctx.Err() != nil) {
			w.k.failMissing("%s was not reported", what)
		}
	}
}

// quietTime is the time without a call after which a change is over. With an injected
// clock the driver reports a change before the step returns, unless the harness sets
// ReportsLater.
const quietTime = 100 * time.Millisecond

func (w *watching) waitQuietTime() {
	w.k.Helper()
	if w.k.s.Clock == nil || w.k.s.ReportsLater {
		w.k.sleep(quietTime)
	}
}

// settles takes the calls until the change is over.
func (w *watching) settle() {
	for {
		w.waitQuietTime()
		n := len(w.told)
		if n == 0 {
			return
		}
		for range n {
			<-w.told
		}
	}
}

// silent wants no change to have been reported.
func (w *watching) wantNoReport() {
	w.k.Helper()
	w.waitQuietTime()
	if n := len(w.told); n > 0 {
		w.k.Errorf("it was told %d times of what it does not watch", n)
	}
}
