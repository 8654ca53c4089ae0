package pawl_test

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// BenchmarkLeasesHeld100000 holds a hundred thousand leases in one client for two TTLs of 10 s, and reports
// what they cost: bytes and goroutines, and how old the oldest lease grew before it was renewed, in percent
// of its TTL. A third is on time; 90 is lost. Run it once: -benchtime=1x.
func BenchmarkLeasesHeld100000(b *testing.B) {
	const leases, ttl = 100_000, 10 * time.Second
	for range b.N {
		d := &ledger{renewed: make(map[string]time.Time, leases)}
		c, err := pawl.New(d, &pawl.Options{TTL: ttl})
		if err != nil {
			b.Fatal(err)
		}
		names := make([]string, leases)
		for i := range names {
			names[i] = "lease" + strconv.Itoa(i)
			d.renewed[names[i]] = time.Time{} // the backend's own memory, before it is measured
		}
		goroutines, before := runtime.NumGoroutine(), heap()
		held := make([]*pawl.Lease, leases)
		for i, name := range names {
			if held[i], err = c.Mutex(name).Lock(background); err != nil {
				b.Fatal(err)
			}
		}
		each := (heap() - before - 8*leases) / leases // less the slice
		cpu := cpuTime()
		time.Sleep(2 * ttl)
		cpu = cpuTime() - cpu
		lost := 0
		for _, l := range held {
			if l.Err() != nil {
				lost++
			}
		}
		b.ReportMetric(float64(each), "B/lease")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines")
		b.ReportMetric(float64(d.oldest)*100/float64(ttl), "oldest-%TTL")
		b.ReportMetric(float64(lost), "lost")
		b.ReportMetric(float64(cpu)*100/float64(2*ttl), "%core")
		if err := c.Close(background); err != nil {
			b.Fatal(err)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// ledger is a backend that grants everything, and notes only when each lease was last renewed: what is
// measured is the client.
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
