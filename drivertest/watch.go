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
		g := k.a.gets(c)
		seen.tells("a grant")
		k.a.writes(withValue(c, "v"))
		seen.tells("a value")
		k.a.waits(waiter, 1)
		seen.tells("a waiter")
		k.a.waits(behind, 2)
		seen.tells("a waiter behind another")
		k.a.releases(behind)
		seen.tells("a waiter behind another that left")
		k.a.releases(waiter)
		seen.tells("a waiter that left")
		if s.breaks {
			k.a.mustBreak(g.Fence, 0, driver.Owner{})
			seen.tells("a break")
			k.a.gets(c)
			seen.tells("a grant after that")
		}
		k.a.gets(k.mutex(force))
		seen.tells("a grant by force")
	})

	s.test("EachChangeOfASharedNameIsReported", func(k *kit) {
		seen := k.watch(k.name)
		one, two, writer := k.reader(), k.reader(), k.mutex(queue(long))
		k.a.gets(one)
		seen.tells("a reader")
		k.a.gets(two)
		seen.tells("a second reader")
		k.a.waits(writer, 1)
		seen.tells("a writer that waits")
		k.a.releases(one)
		seen.tells("a reader that left")
		k.a.releases(two)
		seen.tells("the grant to the writer")
		k.a.releases(writer)
		seen.tells("a release")
	})

	s.test("TheClientsOwnChangesAreReported", func(k *kit) {
		seen, c := k.watch(k.name), k.mutex()
		k.b.gets(c)
		seen.tells("its own grant")
		k.b.releases(c)
		seen.tells("its own release")
	})

	s.test("AnExpiryIsReportedWhenItIsFound", func(k *kit) {
		seen := k.watch(k.name)
		k.a.gets(k.mutex(ttl(k.u)))
		seen.tells("a grant")
		k.past(k.u)
		seen.settles()
		k.a.gets(k.mutex())
		seen.tells("the next grant")
	})

	s.test("AChangeBeforeTheWatchHasBegunIsReported", func(k *kit) {
		seen := k.watchFrom(k.b, k.name)
		k.a.gets(k.mutex())
		seen.tells("what came at once")
	})

	s.test("RenewalsAreNotReported", func(k *kit) {
		seen := k.watch(k.name)
		c, waiter := k.mutex(), k.mutex(queue(long))
		k.a.gets(c)
		k.a.waits(waiter, 1)
		seen.tells("a grant")
		k.a.keeps(c)
		k.a.waits(waiter, 1)
		seen.silent()
		k.a.releases(c)
		seen.tells("a release")
	})

	s.test("OtherNamesAreNotReported", func(k *kit) {
		seen, other := k.watch(k.name), k.watch(k.name+"/other")
		seen.settles()
		k.a.gets(k.mutex(on(k.name + "/other")))
		other.tells("its own")
		seen.silent()
	})

	s.test("AStoppedWatchReportsNothing", func(k *kit) {
		stopped, seen := k.watch(k.name), k.watch(k.name)
		stopped.stop()
		stopped.stop() // a second call does nothing
		stopped.settles()
		k.a.gets(k.mutex())
		seen.tells("who still watches")
		stopped.silent()
	})

	s.test("AWatchMayBeginAgain", func(k *kit) {
		for range 3 {
			seen, c := k.watch(k.name), k.mutex()
			k.a.gets(c)
			seen.tells("a grant")
			seen.stop()
			k.a.releases(c)
		}
	})

	s.test("NothingIsReportedAfterClose", func(k *kit) {
		d := k.open()
		closed, seen := k.watchFrom(d, k.name), k.watch(k.name)
		k.closes(d)
		closed.settles()
		k.a.gets(k.mutex())
		seen.tells("who is still open")
		closed.silent()
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
		k.a.gets(c)
		k.a.releases(c)
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
func (w *watching) tells(what string) {
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
			w.settles()
			return
		case <-time.After(w.k.s.Patience / 10):
		}
		if time.Since(began) > w.k.s.missing() && (w.d.Properties().PushesChanges || w.k.ctx.Err() != nil) {
			w.k.missed("%s was not reported", what)
		}
	}
}

// quietTime is the time without a call after which a change is over. With an injected
// clock the driver reports a change before the step returns, unless the harness sets
// ReportsLater.
const quietTime = 100 * time.Millisecond

func (w *watching) calms() {
	w.k.Helper()
	if w.k.s.Clock == nil || w.k.s.ReportsLater {
		w.k.sleep(quietTime)
	}
}

// settles takes the calls until the change is over.
func (w *watching) settles() {
	for {
		w.calms()
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
func (w *watching) silent() {
	w.k.Helper()
	w.calms()
	if n := len(w.told); n > 0 {
		w.k.Errorf("it was told %d times of what it does not watch", n)
	}
}
