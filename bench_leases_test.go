package pawl_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// BenchmarkLeasesHeld100000 holds a hundred thousand leases in one client for two TTLs of
// 10 s, and reports what they cost: bytes and goroutines, and how old the oldest lease
// grew before it was renewed, in percent of its TTL. A third is on time; 90 is lost. Run
// it once: -benchtime=1x.
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
