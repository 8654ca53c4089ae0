package drivertest

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

// testWatch runs where Properties().PushesChanges says that changes are told. As with
// signals, nothing may depend on it.
func testWatch(s *suite) {
	s.test("EachChangeIsTold", func(k *kit) {
		seen := k.watch(k.name)
		c, waiter := k.mutex(), k.mutex(queue(long))
		g := k.a.gets(c)
		seen.tells("a grant")
		k.a.writes(withValue(c, "v"))
		seen.tells("a value")
		k.a.waits(waiter, 1)
		seen.tells("a waiter")
		k.a.releases(waiter)
		seen.tells("a waiter that left")
		if s.breaks {
			k.a.mustBreak(g.Fence, 0, driver.Owner{})
			seen.tells("a break")
			k.a.gets(c)
			seen.tells("a grant after that")
		}
		k.a.releases(c)
		seen.tells("a release")
	})

	s.test("OtherNamesAreNotTold", func(k *kit) {
		seen, other := k.watch(k.name), k.watch(k.name+"/other")
		k.a.gets(k.mutex(on(k.name + "/other")))
		other.tells("its own")
		seen.silent()
	})

	s.test("AWatchThatWasStoppedIsNotTold", func(k *kit) {
		stopped, seen := k.watch(k.name), k.watch(k.name)
		stopped.stop()
		stopped.stop() // twice is no harm
		k.a.gets(k.mutex())
		seen.tells("who still watches")
		stopped.silent()
	})
}

// A watching is one call of Watch, by the second client.
type watching struct {
	k    *kit
	told chan struct{}
	stop func()
}

func (k *kit) watch(name string) *watching {
	w := &watching{k: k, told: make(chan struct{}, 1024)}
	w.stop = k.b.Driver.(driver.Watcher).Watch(name, func() {
		select {
		case w.told <- struct{}{}:
		default:
		}
	})
	k.Cleanup(w.stop)
	return w
}

// tells waits until the change is told, and takes what came with it.
func (w *watching) tells(what string) {
	w.k.Helper()
	select {
	case <-w.told:
	case <-time.After(w.k.s.Patience):
		w.k.Fatalf("%s was not told within %v", what, w.k.s.Patience)
	}
	for {
		select {
		case <-w.told:
		default:
			return
		}
	}
}

func (w *watching) silent() {
	w.k.Helper()
	select {
	case <-w.told:
		w.k.Error("it was told of what it does not watch")
	default:
	}
}
