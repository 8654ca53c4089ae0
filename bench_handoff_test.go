package pawl_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memlock"
)

func (distant) travel() {
	for began := time.Now(); time.Since(began) < 25*time.Microsecond; {
		runtime.Gosched()
	}
}

// BenchmarkOneName64Distant is 64 goroutines of one process on one name, with a backend
// 50 µs away: what the local handoff is for.
func BenchmarkOneName64Distant(b *testing.B) {
	c, err := pawl.New(distant{memlock.New(nil)}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(background)
	convoy(b, c)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
}

func convoy(b *testing.B, c *pawl.Client) {
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			m := c.Mutex("x")
			for range (b.N + g) / 64 {
				cycle(b, m)
			}
		})
	}
	wg.Wait()
}

// BenchmarkOneName64DistantOther is the same, while another process takes the lock every
// few ms: how long that one waits.
func BenchmarkOneName64DistantOther(b *testing.B) {
	memory := memlock.NewMemory(nil)
	c, err := pawl.New(distant{memory.Driver()}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(background)
	other, err := pawl.New(distant{memory.Driver()}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer other.Close(background)

	var over atomic.Bool
	var longest, sum time.Duration
	waits := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for !over.Load() {
			time.Sleep(3 * time.Millisecond)
			began := time.Now()
			cycle(b, other.Mutex("x"))
			waited := time.Since(began)
			longest, sum, waits = max(longest, waited), sum+waited, waits+1
		}
	})
	convoy(b, c)
	over.Store(true)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	b.ReportMetric(float64(longest.Microseconds())/1000, "longest-wait-ms")
	b.ReportMetric(float64(sum.Microseconds())/1000/float64(waits), "mean-wait-ms")
}
