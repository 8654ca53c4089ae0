package sqlitelock

import (
	"testing"

	"github.com/pawl-go/pawl/drivertest"
)

// BenchmarkCycle acquires and releases a name, in one goroutine.
func BenchmarkCycle(b *testing.B) {
	d := open(b, newPath(b), nil)
	b.ReportAllocs()
	for b.Loop() {
		cycle(b, d, "report:nightly")
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
}

// BenchmarkBesideHolders measures the cost of a step beside many holders of its name.
func BenchmarkBesideHolders(b *testing.B) {
	drivertest.BenchmarkHolders(b, open(b, newPath(b), nil), nil, 1, 100, 1000)
}

// BenchmarkAll compares pawl.All with a single lock.
func BenchmarkAll(b *testing.B) { drivertest.BenchmarkAll(b, open(b, newPath(b), nil)) }
