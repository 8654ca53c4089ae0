//go:build unix

package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

func init() { otherCommands["pawl-frail"] = pawlFrail }

// pawlFrail is pawl with the URL scheme frail: a SQLite file in which all renewals fail,
// except the first.
func pawlFrail() {
	driver.Register("frail", func(ctx context.Context, u *url.URL) (driver.Driver, error) {
		d, err := driver.Open(ctx, fileURL(u.Path))
		return &frailDriver{Driver: d}, err
	})
	os.Exit(pawlMain())
}

type frailDriver struct {
	driver.Driver
	renewals atomic.Int32
}

func (f *frailDriver) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	if f.renewals.Add(1) > 1 {
		return nil, errors.New("the backend fails")
	}
	return f.Driver.Renew(ctx, leases)
}

// Inspect shows no holder, like an outdated answer.
func (f *frailDriver) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	e, err := f.Driver.Inspect(ctx, name)
	e.Holders = nil
	return e, err
}

// Attach succeeds and Detach fails: the lease belongs to a job that still runs.
func TestALeaseThatCannotBeDetachedStaysHeld(t *testing.T) {
	for _, args := range [][]string{{"renew"}, {"acquire", "y"}} {
		t.Run(args[0], func(t *testing.T) {
			b := newLab(t)
			lease := mustGet(b.c.Mutex("x", pawl.WithTTL(hangTime)).Lock(t.Context()))(t)
			b.write("handle", string(mustGet(lease.Detach(t.Context()))(t)))
			b.startAs("pawl-frail", append(args, "--url", "frail:"+b.file("locks.db"), "--handle", "handle")...).wantCode(exitUnavailable)
			if e := b.entry("x"); len(e.Holders) != 1 || e.Holders[0].Released {
				t.Errorf("it is released: %+v", e)
			}
		})
	}
}
