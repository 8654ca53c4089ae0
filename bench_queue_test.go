package pawl_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memlock"
)

// The local queue with a crowd in it. What is measured is the whole crowd, goroutines and
// all.

// BenchmarkEnter40000 is 40 000 readers of one name that lock it at once: until all of
// them ask the backend, for none waits for the answer of another.
func BenchmarkEnter40000(b *testing.B) {
	const crowd = 40_000
	var cpu time.Duration
	for range b.N {
		d := &silent{Driver: memlock.New(nil)}
		c, err := pawl.New(d, nil)
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(background)
		var wg sync.WaitGroup
		cpu -= cpuTime()
		for range crowd {
			wg.Go(func() { _, _ = c.RWMutex("x").RLock(ctx) })
		}
		for d.asked.Load() < crowd {
			time.Sleep(100 * time.Microsecond)
		}
		b.StopTimer()
		cpu += cpuTime()
		cancel()
		wg.Wait()
		if err := c.Close(background); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
}

// BenchmarkCancel80000 is 80 000 who wait for one name and whose ctx ends: until all have
// left.
func BenchmarkCancel80000(b *testing.B) {
	const crowd = 80_000
	var cpu time.Duration
	for range b.N {
		b.StopTimer()
		c, err := pawl.New(memlock.New(nil), nil)
		if err != nil {
			b.Fatal(err)
		}
		held, err := c.Mutex("x").Lock(background)
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(background)
		w := &watched{Context: ctx}
		var wg sync.WaitGroup
		for range crowd {
			wg.Go(func() { _, _ = c.Mutex("x").Lock(w) })
		}
		for w.waits.Load() < crowd {
			time.Sleep(time.Millisecond)
		}
		b.StartTimer()
		cpu -= cpuTime()
		cancel()
		wg.Wait()
		cpu += cpuTime()
		b.StopTimer()
		if err := held.Release(background); err != nil {
			b.Fatal(err)
		}
		if err := c.Close(background); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
}
