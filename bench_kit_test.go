package pawl_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// distant is a backend that is 50 µs away. It waits by yielding, because a sleep that
// short is not to be had.
type distant struct{ *locktable.Driver }

func (d distant) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	d.travel()
	defer d.travel()
	return d.Driver.Acquire(ctx, c)
}

func (d distant) Renew(ctx context.Context, l []driver.LeaseRef) ([]error, error) {
	d.travel()
	defer d.travel()
	return d.Driver.Renew(ctx, l)
}

func (d distant) Release(ctx context.Context, l driver.LeaseRef) error {
	d.travel()
	defer d.travel()
	return d.Driver.Release(ctx, l)
}

// ledger is a backend that grants everything, and notes only when each lease was last
// renewed: what is measured is the client.
type ledger struct {
	mu      sync.Mutex
	fence   uint64
	renewed map[string]time.Time
	oldest  time.Duration
}

func (d *ledger) Acquire(_ context.Context, c driver.Claim) (driver.Grant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fence++
	d.renewed[c.Name] = time.Now()
	return driver.Grant{Fence: d.fence, Fences: 1, TTL: c.TTL}, nil
}

func (d *ledger) Renew(_ context.Context, leases []driver.LeaseRef) ([]error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, l := range leases {
		d.oldest = max(d.oldest, now.Sub(d.renewed[l.Name]))
		d.renewed[l.Name] = now
	}
	return make([]error, len(leases)), nil
}

func (d *ledger) Release(context.Context, driver.LeaseRef) error { return nil }

func (d *ledger) Inspect(context.Context, string) (driver.Entry, error) { return driver.Entry{}, nil }

func (d *ledger) Properties() driver.Properties { return driver.Properties{Backend: "ledger"} }

func (d *ledger) Close() error { return nil }

// silent is a backend that does not answer until its caller has given up.
type silent struct {
	driver.Driver

	asked atomic.Int64
}

func (s *silent) Acquire(ctx context.Context, _ driver.Claim) (driver.Grant, error) {
	s.asked.Add(1)
	<-ctx.Done()
	return driver.Grant{}, ctx.Err()
}

// watched is a ctx that counts how often it was waited for.
type watched struct {
	context.Context

	waits atomic.Int64
}

func (w *watched) Done() <-chan struct{} {
	w.waits.Add(1)
	return w.Context.Done()
}

// heap returns the bytes that are in use after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
