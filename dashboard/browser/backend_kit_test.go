package browser

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/memlock"
)

// A backend is a memory with claims of other processes, which the test makes.
type backend struct {
	t      testing.TB
	memory *memlock.Memory
	others engine.Driver
}

func newBackend(t testing.TB, o *memlock.Options) *backend {
	t.Helper()
	m := memlock.NewMemory(o)
	return &backend{t: t, memory: m, others: engine.Full(m.Driver())}
}

// mutex returns a claim of the process with a pid on a host.
func mutex(name, host string, pid int) driver.Claim {
	c := servertest.Queued(name)
	c.TTL, c.QueueTTL, c.Owner = time.Minute, 10*time.Minute, driver.Owner{Client: host, Host: host, PID: pid}
	return c
}

// take requires that a claim is granted, and queue that it waits.
func (b *backend) take(c driver.Claim) driver.Grant {
	b.t.Helper()
	return servertest.Gets(b.t, b.others, c)
}

func (b *backend) queue(c driver.Claim) { b.t.Helper(); servertest.Waits(b.t, b.others, c) }

func (b *backend) release(c driver.Claim) { b.t.Helper(); servertest.Releases(b.t, b.others, c) }

// holders returns the holders of a name.
func (b *backend) holders(name string) []driver.Holder {
	b.t.Helper()
	return must(b.others.Inspect(context.Background(), name))(b.t).Holders
}

// A flakyDriver fails while down is true.
type flakyDriver struct {
	engine.Driver
	down atomic.Bool
}

var errDown = errors.New("dial tcp 10.0.3.17:6379: connect: connection refused")

func (f *flakyDriver) fails() error {
	if f.down.Load() {
		return &driver.Error{Backend: "memory", Op: "list", Err: errDown}
	}
	return nil
}

func (f *flakyDriver) List(ctx context.Context, prefix string) iter.Seq2[driver.Entry, error] {
	if err := f.fails(); err != nil {
		return func(yield func(driver.Entry, error) bool) { yield(driver.Entry{}, err) }
	}
	return f.Driver.List(ctx, prefix)
}

func (f *flakyDriver) Inspect(ctx context.Context, name string) (driver.Entry, error) {
	if err := f.fails(); err != nil {
		return driver.Entry{}, err
	}
	return f.Driver.Inspect(ctx, name)
}
