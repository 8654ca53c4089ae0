package drivertest_test

import (
	"context"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// closer is a driver with another Close.
type closer struct {
	*faulty
	end func(d *faulty) error
}

func (i closer) Close() error { return i.end(i.faulty) }

// replaceClose returns a fault's driver with another Close.
func replaceClose(end func(d *faulty) error) func(*faulty) driver.Driver {
	return func(d *faulty) driver.Driver { return closer{d, end} }
}

// emptyDoctor is a driver with an empty finding, even after Close.
type emptyDoctor struct{ *faulty }

func (emptyDoctor) Diagnose(context.Context) ([]driver.Finding, error) {
	return []driver.Finding{{Severity: "info", Subject: "nothing"}}, nil
}

var endFaults = []fault{{
	name: "a finding says nothing", mustFail: []string{"Properties/ADoctorsFindingsSayWhatIsWrongAndWhatToDo"},
	driver: func(d *faulty) driver.Driver { return emptyDoctor{d} },
}, {
	name: "a ctx that is over leaves a grant or a place", mustFail: []string{"Ctx/AnEndedCtxReturnsItsErrorAndChangesNothing"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		g, err := d.Acquire(context.WithoutCancel(ctx), c)
		if ctx.Err() != nil {
			return driver.Grant{}, ctx.Err()
		}
		return g, err
	}),
}, {
	name: "a ctx that is over is not looked at", mustFail: []string{"Ctx/AnEndedCtxReturnsItsErrorAndChangesNothing"},
	driver: replaceRelease(func(ctx context.Context, d *faulty, l driver.LeaseRef) error {
		return d.Release(context.WithoutCancel(ctx), l)
	}),
}, {
	name: "the end of the ctx ends the lease", mustFail: []string{"Ctx/ItsEndAfterTheCallDoesNotEndTheLease"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		g, err := d.Acquire(ctx, c)
		if _, bounded := ctx.Deadline(); bounded && err == nil {
			context.AfterFunc(ctx, func() { _ = d.Release(context.Background(), driver.LeaseRef{Name: c.Name, Token: c.Token}) })
		}
		return g, err
	}),
}, {
	name: "a closed driver goes on", mustFail: []string{"Close/EveryLaterCallReturnsErrClosed"},
	driver: replaceClose(func(*faulty) error { return nil }),
}, {
	name: "a second Close is an error", mustFail: []string{"Close/ASecondTimeDoesNothing"},
	driver: func(d *faulty) driver.Driver {
		closed := false
		return closer{d, func(d *faulty) error {
			if closed {
				return driver.ErrClosed
			}
			closed = true
			return d.Close()
		}}
	},
}, {
	name: "Close releases what the client holds", mustFail: []string{"Close/DoesNotReleaseLeasesNorPlaces"},
	driver: replaceClose(func(d *faulty) error {
		var names []string
		for e := range d.List(context.Background(), "") {
			names = append(names, e.Name)
		}
		for _, name := range names {
			for _, h := range d.stored(name).Holders {
				if h.Inbox == d.table.inbox {
					_ = d.Release(context.Background(), driver.LeaseRef{Name: name, Token: h.Token})
				}
			}
		}
		return d.Close()
	}),
}, {
	name: "Close ends the places of the client", mustFail: []string{"Close/DoesNotReleaseLeasesNorPlaces"},
	driver: replaceClose(func(d *faulty) error {
		for e := range d.List(context.Background(), "") {
			d.edit(e.Name, func(e *locktable.Entry, _ locktable.Instant) {
				var rest []locktable.Waiter
				for _, w := range e.Queue {
					if w.Inbox != d.table.inbox {
						rest = append(rest, w)
					}
				}
				e.Queue = rest
			})
		}
		return d.Close()
	}),
}}
