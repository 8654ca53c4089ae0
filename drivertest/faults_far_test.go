package drivertest_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// errorChanger is a driver that changes the errors of Acquire.
type errorChanger struct {
	*remote
	change func(err *driver.Error) error
}

func (r errorChanger) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := r.remote.Acquire(ctx, c)
	if failed, ok := errors.AsType[*driver.Error](err); ok {
		err = r.change(failed)
	}
	return g, err
}

// changeError returns a fault's client that changes the errors of Acquire.
func changeError(change func(err *driver.Error) error) func(*remote) driver.Driver {
	return func(r *remote) driver.Driver { return errorChanger{r, change} }
}

// serialDriver is a driver that makes one Acquire at a time.
type serialDriver struct {
	*remote
	mu *sync.Mutex
}

func (o serialDriver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.remote.Acquire(ctx, c)
}

// askingDriver is a driver that asks the server where it should not.
type askingDriver struct {
	*remote
	properties, watch bool
}

func (a askingDriver) Properties() driver.Properties {
	if a.properties {
		_, _ = a.remote.Inspect(context.Background(), "x")
	}
	return a.remote.Properties()
}

func (a askingDriver) Watch(name string, f func()) (stop func()) {
	if a.watch {
		_, _ = a.remote.Inspect(context.Background(), name)
	}
	return a.faulty.Watch(name, f)
}

var farFaults = []fault{{
	name: "errors are passed on as they are", mustFail: []string{"Trouble/AFailureIsADriverErrorThatSaysWhereAndWhat"},
	networkDriver: changeError(func(err *driver.Error) error { return err.Err }),
}, {
	name: "an error does not say on which name", mustFail: []string{"Trouble/AFailureIsADriverErrorThatSaysWhereAndWhat"},
	networkDriver: changeError(func(err *driver.Error) error { return &driver.Error{Backend: err.Backend, Op: err.Op, Err: err.Err} }),
}, {
	name: "an error does not say what was done", mustFail: []string{"Trouble/AFailureIsADriverErrorThatSaysWhereAndWhat"},
	networkDriver: changeError(func(err *driver.Error) error {
		return &driver.Error{Backend: err.Backend, Name: err.Name, Err: err.Err}
	}),
}, {
	name: "an unreachable server is reported as held", mustFail: []string{"Trouble/AFailureIsADriverErrorThatSaysWhereAndWhat"},
	networkDriver: changeError(func(err *driver.Error) error { return &driver.HeldError{Name: err.Name} }),
}, {
	name:     "the clock is coarse, and a release leaves nothing", // as of a store that should have DelaysWrites
	mustFail: []string{"End/AClaimThatComesJustAfterItsLastReleaseIsNotGranted"},
	network: network{isLate: func(p *request, _ []*request, late bool) bool {
		return late && time.Since(p.end) > time.Second
	}},
	realClock: true,
}, {
	name:     "windows stay as narrow as they were", // as if a store never called RecordOutside of its clock
	mustFail: []string{"End/ANetworkThatBecomesSlowerDelaysAndNoMore"},
	network: network{isLate: func(p *request, _ []*request, late bool) bool {
		return late || p.claim != nil && time.Since(p.sent) > 50*time.Millisecond
	}},
	realClock: true,
}, {
	name: "what was answered is sent again, if the answer was lost",
	mustFail: []string{
		"Trouble/AReleaseWhoseAnswerIsLostIsNoLoss", "Trouble/ABreakWhoseAnswerIsLostIsNotRefused",
	},
	network: network{onLostAnswer: func(_ *remote, _ *request, send func() error) error { return send() }},
}, {
	name: "a claim that is sent again is held by itself",
	mustFail: []string{
		"Trouble/AClaimWhoseAnswerIsLostIsGrantedOnce", "Trouble/AForceWhoseAnswerIsLostIsGrantedOnce",
	},
	network: network{onLostAnswer: func(_ *remote, p *request, send func() error) error {
		return cmp.Or[error](send(), &driver.HeldError{Name: p.name, Holders: 1})
	}},
}, {
	name: "a claim that is sent again gets another fence than is stored", mustFail: []string{"Trouble/AClaimWhoseAnswerIsLostIsGrantedOnce"},
	network: network{onLostAnswer: func(r *remote, p *request, send func() error) error {
		err := send()
		r.edit(p.name, func(e *locktable.Entry, _ locktable.Instant) {
			for i := range e.Holders {
				e.Holders[i].Fence++
			}
		})
		return err
	}},
}, {
	name: "a claim that is sent again has two places", mustFail: []string{"Trouble/AClaimToQueueWhoseAnswerIsLostHasOnePlace"},
	network: network{onLostAnswer: func(r *remote, p *request, send func() error) error {
		r.edit(p.name, func(e *locktable.Entry, _ locktable.Instant) {
			for _, w := range e.Queue {
				w.Token = driver.NewToken()
				e.Queue = append(e.Queue, w)
			}
		})
		return send()
	}},
}, {
	name: "a renewal that is sent again finds nothing", mustFail: []string{"Trouble/ARenewalWhoseAnswerIsLostIsNoLoss"},
	network: network{onLostAnswer: func(_ *remote, p *request, send func() error) error {
		if p.op == "renew" {
			return driver.ErrNoSuchLease
		}
		return send()
	}},
}, {
	name: "calls go one after the other", mustFail: []string{"End/ADelayedCallDelaysNoOtherBeyondItsCtx"},
	networkDriver: func(r *remote) driver.Driver { return serialDriver{r, &sync.Mutex{}} },
}, {
	name: "Properties asks the server", mustFail: []string{"End/PropertiesAndWatchDoNotWaitForTheBackend"},
	networkDriver: func(r *remote) driver.Driver { return askingDriver{r, true, false} },
}, {
	name: "Watch asks the server", mustFail: []string{"End/PropertiesAndWatchDoNotWaitForTheBackend"},
	networkDriver: func(r *remote) driver.Driver { return askingDriver{r, false, true} },
}, {
	name: "the client has a network of its own", mustFail: []string{"End/ATryThatComesAfterItsEndChangesNothing"},
	networkDriver: func(r *remote) driver.Driver { return r.faulty },
}, {
	name: "a short TTL is refused", mustFail: []string{"Properties/TheShortestTTLIsGranted"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		if c.TTL < 2*driver.MinTTL {
			return driver.Grant{}, &driver.InvalidError{Argument: "TTL", Problem: "is too short", Allowed: "more"}
		}
		return d.Acquire(ctx, c)
	}),
}, {
	name: "every claim is granted", mustFail: []string{"Basics/AnotherClientSeesWhoHoldsIt"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		d.edit(c.Name, func(e *locktable.Entry, _ locktable.Instant) { e.Holders = nil })
		return d.Acquire(ctx, c)
	}),
}, {
	name: "Acquire waits until it is granted", mustFail: []string{"Basics/AnotherClientSeesWhoHoldsIt"},
	driver: replaceAcquire(func(ctx context.Context, d *faulty, c driver.Claim) (driver.Grant, error) {
		for {
			g, err := d.Acquire(ctx, c)
			if !errors.Is(err, driver.ErrHeld) {
				return g, err
			}
			time.Sleep(time.Millisecond)
		}
	}),
}, {
	name: "a call goes on for ever, whatever its ctx says", mustFail: []string{"Basics/AReleaseLetsTheNextIn"},
	driver: replaceRelease(func(context.Context, *faulty, driver.LeaseRef) error {
		select {}
	}),
}}
