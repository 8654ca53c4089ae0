package pawl_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
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

// BenchmarkSQLiteHeld holds leases of 10 s on a file for two TTLs, and reports what they
// cost: bytes of the process and of the file, processor time, and how old the oldest
// grew. Run it once: -benchtime=1x.
func BenchmarkSQLiteHeld(b *testing.B) {
	const ttl = 10 * time.Second
	for _, leases := range []int{10, 1000, 10_000, 100_000} {
		b.Run(strconv.Itoa(leases), func(b *testing.B) {
			for range b.N {
				file := filepath.Join(b.TempDir(), "locks.db")
				d, err := driver.Open(background, "sqlite:"+file)
				if err != nil {
					b.Fatal(err)
				}
				c, err := pawl.New(d, &pawl.Options{TTL: ttl})
				if err != nil {
					b.Fatal(err)
				}
				before, held := heap(), make([]*pawl.Lease, leases)
				for i := range held {
					if held[i], err = c.Mutex("lease" + strconv.Itoa(i)).Lock(background); err != nil {
						b.Fatal(err)
					}
				}
				each := (float64(heap()) - float64(before)) / float64(leases)
				cpu, least := cpuTime(), ttl
				for end := time.Now().Add(2 * ttl); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
					for i := 0; i < leases; i += 1 + leases/1001 {
						least = min(least, time.Until(held[i].Deadline()))
					}
				}
				cpu = cpuTime() - cpu
				lost := 0
				for _, l := range held {
					if l.Err() != nil {
						lost++
					}
				}
				if stat, err := os.Stat(file); err == nil {
					b.ReportMetric(float64(stat.Size())/float64(leases), "B-of-the-file/lease")
				}
				b.ReportMetric(each, "B/lease")
				b.ReportMetric(90-100*max(0, least.Seconds())/ttl.Seconds(), "oldest-%TTL")
				b.ReportMetric(float64(lost), "lost")
				b.ReportMetric(float64(cpu)*100/float64(2*ttl), "%core")
				if err := c.Close(background); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
