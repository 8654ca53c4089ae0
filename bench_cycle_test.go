package pawl_test

import (
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

// A cycle is Lock and Release. docs/benchmarks.md has the results.

func BenchmarkCycleMemory(b *testing.B) { cycles(b, memlock.New(nil), 1) }

func BenchmarkCycleMemory64OwnNames(b *testing.B) { cycles(b, memlock.New(nil), 64) }

func BenchmarkCycleSQLite(b *testing.B) {
	d, err := driver.Open(background, "sqlite:"+filepath.Join(b.TempDir(), "locks.db"))
	if err != nil {
		b.Fatal(err)
	}
	cycles(b, d, 1)
}

// cycles runs b.N cycles in goroutines on names of their own.
func cycles(b *testing.B, d driver.Driver, goroutines int) {
	c, err := pawl.New(d, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(background)
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			m := c.Mutex("name" + strconv.Itoa(g))
			for range (b.N + g) / goroutines {
				cycle(b, m)
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
}

func cycle(b *testing.B, m *pawl.Mutex) {
	l, err := m.Lock(background)
	if err == nil {
		err = l.Release(background)
	}
	if err != nil {
		b.Error(err)
	}
}
