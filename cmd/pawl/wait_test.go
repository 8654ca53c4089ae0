package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// An unresponsiveDriver does not answer Inspect while unresponsive is set: it fails with
// err, or hangs if err is nil.
type unresponsiveDriver struct {
	driver.Driver

	unresponsive atomic.Bool
	err          error
}

func (d *unresponsiveDriver) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if !d.unresponsive.Load() {
		return d.Driver.Inspect(ctx, name)
	}
	if d.err != nil {
		return driver.Entry{}, d.err
	}
	<-ctx.Done()
	return driver.Entry{}, ctx.Err()
}

// When --wait has passed, wait reports the current state, not the last one of the watch.
func TestWaitReportsTheCurrentState(t *testing.T) {
	for _, c := range []struct {
		what          string
		err           error
		unresponsive  bool
		recoversAfter time.Duration // then the lease is released, and the database answers
		code          int
	}{
		{what: "still held", code: exitHeld},
		{what: "the database hangs", unresponsive: true, code: exitUnavailable},
		{what: "the database is down", unresponsive: true, err: errors.New("down"), code: exitUnavailable},
		{what: "free, and the watch missed it", unresponsive: true, err: errors.New("down"), recoversAfter: 1500 * time.Millisecond},
	} {
		bubble.Test(t, func(t *testing.T) {
			memory := memlock.NewMemory(nil)
			d := &unresponsiveDriver{Driver: engine.Full(memory.Driver()), err: c.err}
			locks := mustGet(pawl.New(d, nil))(t)
			defer locks.Close()
			lease := mustGet(locks.Mutex("x").Lock(t.Context()))(t)
			time.AfterFunc(time.Second, func() { d.unresponsive.Store(c.unresponsive) })
			if c.recoversAfter > 0 {
				time.AfterFunc(time.Second+c.recoversAfter, func() {
					_ = lease.Release(context.Background())
					d.unresponsive.Store(false)
				})
			}
			w := &waitCommand{name: "x", maxWait: 2*time.Second + 600*time.Millisecond}
			began := time.Now()
			err := w.run(t.Context(), func(_ context.Context, f func(*pawl.Client) error) error { return f(locks) })
			if c.code == 0 && err != nil || c.code != 0 && !codeIs(err, c.code) {
				t.Errorf("%s: it ends with %v, want the code %d", c.what, err, c.code)
			}
			if took := time.Since(began); took > w.maxWait+tryTimeout {
				t.Errorf("%s: it took %v", c.what, took)
			}
		})
	}
}
