package drivertest_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// inspector is a driver with another Inspect or List.
type inspector struct {
	*faulty
	entry func(e *driver.Entry, stored *locktable.Entry)
	list  func(ctx context.Context, d *faulty, prefix string) iter.Seq2[driver.Entry, error]
}

func (r inspector) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	e, err := r.Driver.Inspect(ctx, name)
	if err == nil && r.entry != nil {
		r.entry(&e, r.stored(name))
	}
	return e, err
}

func (r inspector) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	if r.list == nil {
		return r.Driver.List(ctx, prefix)
	}
	return r.list(ctx, r.faulty, prefix)
}

func changeEntry(change func(e *driver.Entry, stored *locktable.Entry)) func(*faulty) driver.Driver {
	return func(d *faulty) driver.Driver { return inspector{faulty: d, entry: change} }
}

// changeList returns a fault's driver that applies change to the entries of all names.
func changeList(change func(all []driver.Entry, prefix string) []driver.Entry) func(*faulty) driver.Driver {
	return func(d *faulty) driver.Driver {
		return inspector{faulty: d, list: func(ctx context.Context, d *faulty, prefix string) iter.Seq2[driver.Entry, error] {
			return func(yield func(driver.Entry, error) bool) {
				var all []driver.Entry
				for e, err := range d.List(ctx, "") {
					if err != nil {
						yield(e, err)
						return
					}
					all = append(all, e)
				}
				for _, e := range change(all, prefix) {
					if !yield(e, nil) {
						return
					}
				}
			}
		}}
	}
}

// changePrefix returns a fault's driver that lists the names that match says have the
// prefix.
func changePrefix(match func(name, prefix string) bool) func(*faulty) driver.Driver {
	return changeList(func(all []driver.Entry, prefix string) []driver.Entry {
		return slices.DeleteFunc(all, func(e driver.Entry) bool { return !match(e.Name, prefix) })
	})
}

var inspectFaults = []fault{{
	name: "expired holders are shown", mustFail: []string{"Expiry/ExpiredLeasesAndPlacesAreNotShown"},
	driver: changeEntry(func(e *driver.Entry, stored *locktable.Entry) {
		if len(stored.Holders) > len(e.Holders) {
			e.Holders = stored.Public(stored.Holders[0].Since, e.Name).Holders
		}
	}),
}, {
	name: "labels are lost", mustFail: []string{"Inspect/ShowsHoldersAndWaitersAsTheyClaimed"},
	driver: changeEntry(func(e *driver.Entry, _ *locktable.Entry) {
		for i := range e.Waiters {
			e.Waiters[i].Owner.Labels = nil
		}
	}),
}, {
	name: "since is the last renewal", mustFail: []string{"Inspect/SinceIsTheGrantAndNotTheRenewal"},
	driver: changeEntry(func(e *driver.Entry, stored *locktable.Entry) {
		for i := range e.Holders {
			e.Holders[i].Since = stored.Holders[i].Expires.Time().Add(-time.Hour)
		}
	}),
}, {
	name: "the time left stands still", mustFail: []string{"Inspect/TheTimeLeftRunsDown"},
	driver: changeEntry(func(e *driver.Entry, stored *locktable.Entry) {
		for i := range e.Holders {
			e.Holders[i].ExpiresIn = stored.Holders[i].Since.Until(stored.Holders[i].Expires)
		}
	}),
}, {
	name: "an unknown name is an error", mustFail: []string{"Inspect/AnUnknownNameIsAnEmptyEntry"},
	driver: changeEntry(func(e *driver.Entry, stored *locktable.Entry) {
		if stored.Fence == 0 {
			e.Name, e.Fence = "", 1
		}
	}),
}, {
	name: "labels are shared with the caller", mustFail: []string{"Inspect/IsTheCallersOwnCopy"},
	driver: changeEntry(func(e *driver.Entry, stored *locktable.Entry) {
		for i := range e.Holders {
			e.Holders[i].Owner = stored.Holders[i].Owner
		}
	}),
}, {
	name: "the queue is shown backwards", mustFail: []string{"Inspect/ShowsHoldersAndWaitersAsTheyClaimed", "Random/OperationsAreAnsweredAsByMemlock"},
	driver: changeEntry(func(e *driver.Entry, _ *locktable.Entry) { slices.Reverse(e.Waiters) }),
}, {
	name: "the prefix is a LIKE pattern", mustFail: []string{"List/TakesThePrefixLiterally"},
	driver: changePrefix(func(name, prefix string) bool {
		parts := strings.FieldsFunc(prefix, func(r rune) bool { return r == '%' || r == '_' })
		return len(parts) == 0 || strings.HasPrefix(name, parts[0])
	}),
}, {
	name: "the prefix is a glob", mustFail: []string{"List/TakesThePrefixLiterally"},
	driver: changePrefix(func(name, prefix string) bool {
		ok, _ := path.Match(strings.ReplaceAll(prefix, "/", "\x00")+"*", strings.ReplaceAll(name, "/", "\x00"))
		return ok
	}),
}, {
	name: "the prefix is folded", mustFail: []string{"List/TakesThePrefixLiterally"},
	driver: changePrefix(func(name, prefix string) bool {
		return strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix))
	}),
}, {
	name: "a listing ends before U+10FFFF", mustFail: []string{"List/APrefixEndsWhereTheNextBegins"},
	driver: changePrefix(func(name, prefix string) bool {
		return strings.HasPrefix(name, prefix) && name < prefix+"\U0010ffff"
	}),
}, {
	name: "a listing is not in order", mustFail: []string{"List/YieldsNamesInUseInByteOrder", "Names/AreComparedByteForByte"},
	driver: changeList(func(all []driver.Entry, prefix string) []driver.Entry {
		all = slices.DeleteFunc(all, func(e driver.Entry) bool { return !strings.HasPrefix(e.Name, prefix) })
		slices.SortFunc(all, func(a, b driver.Entry) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
		return all
	}),
}, {
	name: "a listing stops after a page", mustFail: []string{"List/ManyNamesComeOnceEach"},
	driver: changeList(func(all []driver.Entry, prefix string) []driver.Entry {
		all = slices.DeleteFunc(all, func(e driver.Entry) bool { return !strings.HasPrefix(e.Name, prefix) })
		return all[:min(len(all), 100)]
	}),
}, {
	name: "a token stands in an error", mustFail: []string{"Secret/NoAnswerShowsAToken"},
	driver: replaceRelease(func(ctx context.Context, d *faulty, l driver.LeaseRef) error {
		err := d.Release(ctx, l)
		if errors.Is(err, driver.ErrNoSuchLease) {
			err = fmt.Errorf("%w: token %s", err, hex.EncodeToString(l.Token[:]))
		}
		return err
	}),
}, {
	name: "a token stands in an entry", mustFail: []string{"Secret/NoAnswerShowsAToken"},
	driver: changeEntry(func(e *driver.Entry, stored *locktable.Entry) {
		for i := range e.Waiters {
			e.Waiters[i].Owner.Host = string(stored.Queue[i].Token[:])
		}
	}),
}}
