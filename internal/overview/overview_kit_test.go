package overview_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/overview"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/memlock"
)

// Functions that all tests share.
var noError = basictest.NoError

// A countingDriver counts its calls, and can fail on demand.
type countingDriver struct {
	engine.Driver
	lists, reads  atomic.Int64
	watches       atomic.Int64 // watches that began
	hangs         atomic.Bool  // lists get no answer
	slow          atomic.Bool  // the next list takes 4 s
	pushesNothing atomic.Bool  // watches report no changes
	damaged       atomic.Value // a name that cannot be read
}

func (d *countingDriver) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	d.lists.Add(1)
	return func(yield func(driver.Entry, error) bool) {
		if d.hangs.Load() {
			<-ctx.Done()
			yield(driver.Entry{}, ctx.Err())
			return
		}
		if d.slow.Swap(false) {
			time.Sleep(4 * time.Second)
		}
		if name, ok := d.damaged.Load().(string); ok && !yield(driver.Entry{Name: name}, errors.New("damaged")) {
			return
		}
		d.Driver.List(ctx, prefix)(yield)
	}
}

func (d *countingDriver) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	d.reads.Add(1)
	return d.Driver.Inspect(ctx, name)
}

func (d *countingDriver) Properties() driver.Properties {
	p := d.Driver.Properties()
	p.PushesChanges = p.PushesChanges && !d.pushesNothing.Load()
	return p
}

func (d *countingDriver) Watch(name string, f func()) (stop func()) {
	d.watches.Add(1)
	return d.Driver.Watch(name, func() {
		if !d.pushesNothing.Load() {
			f()
		}
	})
}

// A fixture is a memory with a running overview, and another driver of the same memory.
type fixture struct {
	*overview.Overview
	driver *countingDriver
	others engine.Driver // of other clients
}

// withFixture runs f with a fixture, in virtual time.
func withFixture(t *testing.T, o *overview.Options, f func(t *testing.T, w *fixture)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) { f(t, newFixture(t, memlock.NewMemory(nil), o)) })
}

// newFixtureWithClock returns a fixture whose backend has this clock.
func newFixtureWithClock(t *testing.T, now func() time.Time) *fixture {
	t.Helper()
	return newFixture(t, memlock.NewMemory(&memlock.Options{Now: now}), nil)
}

func newFixture(t *testing.T, memory *memlock.Memory, o *overview.Options) *fixture {
	t.Helper()
	w := &fixture{driver: &countingDriver{Driver: engine.Full(memory.Driver())}, others: engine.Full(memory.Driver())}
	c, err := pawl.New(w.driver, nil)
	noError(t, err)
	w.Overview = overview.New(c, o)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ran
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// addViewer adds a viewer that shows names until the test ends.
func (w *fixture) addViewer(t *testing.T, names ...string) *overview.Viewer {
	t.Helper()
	v := w.Join()
	t.Cleanup(v.Leave)
	v.Show(names)
	return v
}

// claim returns a mutex claim of the process with a pid.
func claim(name string, pid int) driver.Claim {
	c := servertest.Queued(name)
	c.TTL, c.QueueTTL, c.Owner = 30*time.Second, time.Minute, driver.Owner{Client: string(rune('a' + pid)), Host: "host", PID: pid}
	return c
}

func (w *fixture) take(t *testing.T, c driver.Claim) driver.Grant {
	t.Helper()
	return servertest.Gets(t, w.others, c)
}

func (w *fixture) queue(t *testing.T, c driver.Claim) { t.Helper(); servertest.Waits(t, w.others, c) }

func (w *fixture) release(t *testing.T, c driver.Claim) {
	t.Helper()
	servertest.Releases(t, w.others, c)
}

// requests returns the number of requests that the driver received.
func (w *fixture) requests() int64 { return w.driver.lists.Load() + w.driver.reads.Load() }
