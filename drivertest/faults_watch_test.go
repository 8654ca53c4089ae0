package drivertest_test

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A watching driver has its Watch replaced.
type watching struct {
	*faulty
	watch func(d *faulty, name string, f func()) (stop func())
}

func (w *watching) Watch(name string, f func()) (stop func()) { return w.watch(w.faulty, name, f) }

// watches makes a fault of a function that replaces Watch.
func watches(watch func(d *faulty, name string, f func()) (stop func())) func(*faulty) driver.Driver {
	return func(d *faulty) driver.Driver { return &watching{d, watch} }
}

// A deaf driver gets no reports of its own changes.
type deaf struct {
	*faulty
	busy atomic.Bool
}

func (d *deaf) Watch(name string, f func()) (stop func()) {
	return d.faulty.Watch(name, func() {
		if !d.busy.Load() {
			f()
		}
	})
}

func (d *deaf) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	d.busy.Store(true)
	defer d.busy.Store(false)
	return d.faulty.Acquire(ctx, c)
}

// telling are drivers that hide some changes from watches, or report changes that are
// not.
func telling(name string, wants []string, visible func(before, e *locktable.Entry) bool) fault {
	return fault{name: name, wants: wants, step: func(_ *server, e *locktable.Entry, now locktable.Instant, f apply) {
		before := locktable.Entry{Holders: slices.Clone(e.Holders), Queue: slices.Clone(e.Queue)}
		f(now)
		e.Visible = visible(&before, e)
	}}
}

var watchFaults = []fault{{
	name: "changes are not reported", wants: []string{"Watch/EachChangeIsReported"},
	driver: watches(func(*faulty, string, func()) func() { return func() {} }),
}, {
	name: "a watch reports another name", wants: []string{"Watch/OtherNamesAreNotReported"},
	driver: watches(func(d *faulty, name string, f func()) func() {
		one, two := d.Watch(name, f), d.Watch(name+"/other", f)
		return func() { one(); two() }
	}),
}, {
	name: "a watch does not stop", wants: []string{"Watch/AStoppedWatchReportsNothing"},
	driver: watches(func(d *faulty, name string, f func()) func() {
		d.Watch(name, f)
		return func() {}
	}),
}, {
	name: "a name can be watched once only", wants: []string{"Watch/AWatchMayBeginAgain"},
	driver: func(d *faulty) driver.Driver {
		seen := map[string]bool{}
		return &watching{d, func(d *faulty, name string, f func()) func() {
			if seen[name] {
				return func() {}
			}
			seen[name] = true
			return d.Watch(name, f)
		}}
	},
}, {
	name: "a watch begins late and does not say so", wants: []string{"Watch/AChangeBeforeTheWatchHasBegunIsReported"},
	driver: watches(func(d *faulty, name string, f func()) func() {
		t := time.AfterFunc(20*time.Millisecond, func() { d.Watch(name, f) })
		return func() { t.Stop() }
	}),
}, {
	name: "a watch goes on after Close", wants: []string{"Watch/NothingIsReportedAfterClose"},
	driver: func(d *faulty) driver.Driver {
		return &watching{d, func(d *faulty, name string, f func()) func() { return d.table.Watch(name, f) }}
	},
}, {
	name: "a client's own changes are not reported", wants: []string{"Watch/TheClientsOwnChangesAreReported"},
	driver: func(d *faulty) driver.Driver { return &deaf{faulty: d} },
}, telling(
	"only the first and the last holder of a shared name are reported", []string{"Watch/EachChangeOfASharedNameIsReported"},
	func(before, e *locktable.Entry) bool {
		return e.Visible && !(len(before.Holders) > 0 && len(e.Holders) > 0 && e.Holders[0].Weight == 1)
	},
), telling(
	"only the first of a queue is reported", []string{"Watch/EachChangeIsReported"},
	func(before, e *locktable.Entry) bool { return e.Visible && len(before.Queue) != 1 },
), telling(
	"values are not reported", []string{"Watch/EachChangeIsReported"},
	func(before, e *locktable.Entry) bool {
		return e.Visible && (len(before.Holders) != len(e.Holders) || len(before.Queue) != len(e.Queue))
	},
), telling(
	"renewals are reported", []string{"Watch/RenewalsAreNotReported"},
	func(_, e *locktable.Entry) bool { return e.Changed },
)}
