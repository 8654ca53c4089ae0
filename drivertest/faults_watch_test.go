package drivertest_test

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// watcher is a driver with another Watch.
type watcher struct {
	*faulty
	watch func(d *faulty, name string, f func()) (stop func())
}

func (w *watcher) Watch(name string, f func()) (stop func()) { return w.watch(w.faulty, name, f) }

// replaceWatch returns a fault's driver with another Watch.
func replaceWatch(watch func(d *faulty, name string, f func()) (stop func())) func(*faulty) driver.Driver {
	return func(d *faulty) driver.Driver { return &watcher{d, watch} }
}

// ownChangesHider is a driver whose watches do not report its own changes.
type ownChangesHider struct {
	*faulty
	busy atomic.Bool
}

func (d *ownChangesHider) Watch(name string, f func()) (stop func()) {
	return d.faulty.Watch(name, func() {
		if !d.busy.Load() {
			f()
		}
	})
}

func (d *ownChangesHider) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	d.busy.Store(true)
	defer d.busy.Store(false)
	return d.faulty.Acquire(ctx, c)
}

// visibilityFault returns a fault that hides changes from watches, or reports what they
// must not see.
func visibilityFault(name string, wants []string, visible func(before, e *locktable.Entry) bool) fault {
	return fault{name: name, mustFail: wants, step: func(_ *server, e *locktable.Entry, now locktable.Instant, f apply) {
		before := locktable.Entry{Holders: slices.Clone(e.Holders), Queue: slices.Clone(e.Queue)}
		f(now)
		e.Visible = visible(&before, e)
	}}
}

var watchFaults = []fault{{
	name: "changes are not reported", mustFail: []string{"Watch/EachChangeIsReported"},
	driver: replaceWatch(func(*faulty, string, func()) func() { return func() {} }),
}, {
	name: "a watch reports another name", mustFail: []string{"Watch/OtherNamesAreNotReported"},
	driver: replaceWatch(func(d *faulty, name string, f func()) func() {
		one, two := d.Watch(name, f), d.Watch(name+"/other", f)
		return func() { one(); two() }
	}),
}, {
	name: "a watch does not stop", mustFail: []string{"Watch/AStoppedWatchReportsNothing"},
	driver: replaceWatch(func(d *faulty, name string, f func()) func() {
		d.Watch(name, f)
		return func() {}
	}),
}, {
	name: "a name can be watched once only", mustFail: []string{"Watch/AWatchMayBeginAgain"},
	driver: func(d *faulty) driver.Driver {
		seen := map[string]bool{}
		return &watcher{d, func(d *faulty, name string, f func()) func() {
			if seen[name] {
				return func() {}
			}
			seen[name] = true
			return d.Watch(name, f)
		}}
	},
}, {
	name: "a watch begins late and does not say so", mustFail: []string{"Watch/AChangeBeforeTheWatchHasBegunIsReported"},
	driver: replaceWatch(func(d *faulty, name string, f func()) func() {
		t := time.AfterFunc(20*time.Millisecond, func() { d.Watch(name, f) })
		return func() { t.Stop() }
	}),
}, {
	name: "a watch goes on after Close", mustFail: []string{"Watch/NothingIsReportedAfterClose"},
	driver: func(d *faulty) driver.Driver {
		return &watcher{d, func(d *faulty, name string, f func()) func() { return d.table.Watch(name, f) }}
	},
}, {
	name: "a client's own changes are not reported", mustFail: []string{"Watch/TheClientsOwnChangesAreReported"},
	driver: func(d *faulty) driver.Driver { return &ownChangesHider{faulty: d} },
}, visibilityFault(
	"only the first and the last holder of a shared name are reported", []string{"Watch/EachChangeOfASharedNameIsReported"},
	func(before, e *locktable.Entry) bool {
		return e.Visible && !(len(before.Holders) > 0 && len(e.Holders) > 0 && e.Holders[0].Weight == 1)
	},
), visibilityFault(
	"only the first of a queue is reported", []string{"Watch/EachChangeIsReported"},
	func(before, e *locktable.Entry) bool { return e.Visible && len(before.Queue) != 1 },
), visibilityFault(
	"values are not reported", []string{"Watch/EachChangeIsReported"},
	func(before, e *locktable.Entry) bool {
		return e.Visible && (len(before.Holders) != len(e.Holders) || len(before.Queue) != len(e.Queue))
	},
), visibilityFault(
	"renewals are reported", []string{"Watch/RenewalsAreNotReported"},
	func(_, e *locktable.Entry) bool { return e.Changed },
)}
