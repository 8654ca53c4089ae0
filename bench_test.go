package pawl_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/cputime"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// A cycle is Lock and Release. docs/internals/benchmarks.md has the results.

func BenchmarkCycleMemory(b *testing.B) { cycles(b, memlock.New(nil), 1) }

func BenchmarkCycleMemory64OwnNames(b *testing.B) { cycles(b, memlock.New(nil), 64) }

func BenchmarkCycleSQLite(b *testing.B) {
	d := must(driver.Open(background, "sqlite:"+filepath.Join(b.TempDir(), "locks.db")))(b)
	cycles(b, d, 1)
}

// cycles runs b.N cycles in goroutines, each on its own name.
func cycles(b *testing.B, d driver.Driver, goroutines int) {
	c := must(pawl.New(d, nil))(b)
	defer c.Close()
	mutexes := make([]*pawl.Mutex, goroutines)
	for i := range mutexes {
		mutexes[i] = c.Mutex("name" + strconv.Itoa(i))
	}
	drivertest.BenchmarkCycles(b, goroutines, func(i int) error { return cycle(mutexes[i]) })
}

func cycle(m *pawl.Mutex) error {
	l, err := m.Lock(background)
	if err != nil {
		return err
	}
	return l.Release(background)
}

func (distant) travel() {
	for began := time.Now(); time.Since(began) < 25*time.Microsecond; {
		runtime.Gosched()
	}
}

// BenchmarkOneName64Distant measures 64 goroutines of one process on one name, with a
// backend 50 µs away: the case for which the local hand-off exists.
func BenchmarkOneName64Distant(b *testing.B) {
	c := must(pawl.New(distant{engine.Full(memlock.New(nil))}, nil))(b)
	defer c.Close()
	m := c.Mutex("x")
	drivertest.BenchmarkCycles(b, 64, func(int) error { return cycle(m) })
}

// BenchmarkOneName64DistantOther measures the same, while another client takes the lock
// every few ms. It reports how long that client waits.
func BenchmarkOneName64DistantOther(b *testing.B) {
	memory := memlock.NewMemory(nil)
	c := must(pawl.New(distant{engine.Full(memory.Driver())}, nil))(b)
	defer c.Close()
	other := must(pawl.New(distant{engine.Full(memory.Driver())}, nil))(b)
	defer other.Close()

	var ended atomic.Bool
	var longest, sum time.Duration
	waits := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for !ended.Load() {
			time.Sleep(3 * time.Millisecond)
			began := time.Now()
			if err := cycle(other.Mutex("x")); err != nil {
				b.Error(err)
			}
			waited := time.Since(began)
			longest, sum, waits = max(longest, waited), sum+waited, waits+1
		}
	})
	m := c.Mutex("x")
	drivertest.BenchmarkCycles(b, 64, func(int) error { return cycle(m) })
	ended.Store(true)
	wg.Wait()
	b.ReportMetric(float64(longest.Microseconds())/1000, "longest-wait-ms")
	b.ReportMetric(float64(sum.Microseconds())/1000/float64(waits), "mean-wait-ms")
}

// distant is a backend that is 50 µs away. It waits by yielding, because the shortest
// sleep is longer.
type distant struct{ engine.Driver }

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

// grantAll is a backend that grants every claim and stores only the time of the last
// renewal of each lease, so that the benchmark measures the client.
type grantAll struct {
	mu      sync.Mutex
	fence   uint64
	renewed map[string]time.Time
	oldest  time.Duration
}

func (d *grantAll) Acquire(_ context.Context, c driver.Claim) (driver.Grant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fence++
	d.renewed[c.Name] = time.Now()
	return driver.Grant{Fence: d.fence, Fences: 1, TTL: c.TTL}, nil
}

func (d *grantAll) Renew(_ context.Context, leases []driver.LeaseRef) ([]error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, l := range leases {
		d.oldest = max(d.oldest, now.Sub(d.renewed[l.Name]))
		d.renewed[l.Name] = now
	}
	return make([]error, len(leases)), nil
}

func (d *grantAll) Release(context.Context, driver.LeaseRef) error { return nil }

func (d *grantAll) Inspect(context.Context, string) (driver.Entry, error) { return driver.Entry{}, nil }

func (d *grantAll) Properties() driver.Properties { return driver.Properties{Backend: "grant all"} }

func (d *grantAll) Close() error { return nil }

// silentDriver is a backend that does not answer until its caller has given up.
type silentDriver struct {
	driver.Driver

	asked atomic.Int64
}

func (s *silentDriver) Acquire(ctx context.Context, _ driver.Claim) (driver.Grant, error) {
	s.asked.Add(1)
	<-ctx.Done()
	return driver.Grant{}, ctx.Err()
}

// countingCtx is a ctx that counts the calls of its Done.
type countingCtx struct {
	context.Context

	waits atomic.Int64
}

func (w *countingCtx) Done() <-chan struct{} {
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

// BenchmarkLeasesHeld100000 holds a hundred thousand leases in one client for two TTLs of
// 10 s. It reports the bytes, the goroutines, and the greatest age of a lease at its
// renewal, in percent of the TTL: 33 % is on time, and at 90 % a lease is lost. Run it
// once: -benchtime=1x.
func BenchmarkLeasesHeld100000(b *testing.B) {
	const leases, ttl = 100_000, 10 * time.Second
	for range b.N {
		d := &grantAll{renewed: make(map[string]time.Time, leases)}
		c := must(pawl.New(d, &pawl.Options{TTL: ttl}))(b)
		names := make([]string, leases)
		for i := range names {
			names[i] = "lease" + strconv.Itoa(i)
			d.renewed[names[i]] = time.Time{} // the backend's own memory, before it is measured
		}
		goroutines, before := runtime.NumGoroutine(), heap()
		held := make([]*pawl.Lease, leases)
		for i, name := range names {
			held[i] = must(c.Mutex(name).Lock(background))(b)
		}
		bytesPerLease := (heap() - before - 8*leases) / leases // without the slice held
		cpu := cputime.Used()
		time.Sleep(2 * ttl)
		cpu = cputime.Used() - cpu
		lost := 0
		for _, l := range held {
			if l.Err() != nil {
				lost++
			}
		}
		b.ReportMetric(float64(bytesPerLease), "B/lease")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines")
		b.ReportMetric(float64(d.oldest)*100/float64(ttl), "oldest-%TTL")
		b.ReportMetric(float64(lost), "lost")
		b.ReportMetric(float64(cpu)*100/float64(2*ttl), "%core")
		noError(b, c.Close())
	}
}

// BenchmarkSQLiteHeld holds leases of 10 s in a file for two TTLs, and reports what they
// cost: bytes of the process and of the file, processor time, and how old the oldest
// lease grew. Run it once: -benchtime=1x.
func BenchmarkSQLiteHeld(b *testing.B) {
	const ttl = 10 * time.Second
	for _, leases := range []int{10, 1000, 10_000, 100_000} {
		b.Run(strconv.Itoa(leases), func(b *testing.B) {
			for range b.N {
				file := filepath.Join(b.TempDir(), "locks.db")
				d := must(driver.Open(background, "sqlite:"+file))(b)
				c := must(pawl.New(d, &pawl.Options{TTL: ttl}))(b)
				before, held := heap(), make([]*pawl.Lease, leases)
				for i := range held {
					held[i] = must(c.Mutex("lease" + strconv.Itoa(i)).Lock(background))(b)
				}
				bytesPerLease := (float64(heap()) - float64(before)) / float64(leases)
				cpu, shortestLeft := cputime.Used(), ttl
				for end := time.Now().Add(2 * ttl); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
					for i := 0; i < leases; i += 1 + leases/1001 {
						shortestLeft = min(shortestLeft, time.Until(held[i].Deadline()))
					}
				}
				cpu = cputime.Used() - cpu
				lost := 0
				for _, l := range held {
					if l.Err() != nil {
						lost++
					}
				}
				if stat, err := os.Stat(file); err == nil {
					b.ReportMetric(float64(stat.Size())/float64(leases), "B-of-the-file/lease")
				}
				b.ReportMetric(bytesPerLease, "B/lease")
				b.ReportMetric(90-100*max(0, shortestLeft.Seconds())/ttl.Seconds(), "oldest-%TTL")
				b.ReportMetric(float64(lost), "lost")
				b.ReportMetric(float64(cpu)*100/float64(2*ttl), "%core")
				noError(b, c.Close())
			}
		})
	}
}

// The next benchmarks fill the local queue. They measure all waiters together, from the
// start of the first goroutine to the end of the last.

// BenchmarkEnter40000 measures 40 000 readers that lock one name at once, until all have
// sent a claim: no reader waits for the answer to another.
func BenchmarkEnter40000(b *testing.B) {
	const readers = 40_000
	var cpu time.Duration
	for range b.N {
		d := &silentDriver{Driver: engine.Full(memlock.New(nil))}
		c := must(pawl.New(d, nil))(b)
		ctx, cancel := context.WithCancel(background)
		var wg sync.WaitGroup
		cpu -= cputime.Used()
		for range readers {
			wg.Go(func() { _, _ = c.RWMutex("x").RLock(ctx) })
		}
		for d.asked.Load() < readers {
			time.Sleep(100 * time.Microsecond)
		}
		b.StopTimer()
		cpu += cputime.Used()
		cancel()
		wg.Wait()
		noError(b, c.Close())
		b.StartTimer()
	}
	b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
}

// BenchmarkCancel80000 measures 80 000 waiters for one name whose ctx ends, until all
// have left.
func BenchmarkCancel80000(b *testing.B) {
	const waiters = 80_000
	var cpu time.Duration
	for range b.N {
		b.StopTimer()
		c := must(pawl.New(memlock.New(nil), nil))(b)
		held := must(c.Mutex("x").Lock(background))(b)
		ctx, cancel := context.WithCancel(background)
		w := &countingCtx{Context: ctx}
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() { _, _ = c.Mutex("x").Lock(w) })
		}
		for w.waits.Load() < waiters {
			time.Sleep(time.Millisecond)
		}
		b.StartTimer()
		cpu -= cputime.Used()
		cancel()
		wg.Wait()
		cpu += cputime.Used()
		b.StopTimer()
		noError(b, held.Release(background))
		noError(b, c.Close())
		b.StartTimer()
	}
	b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
}
