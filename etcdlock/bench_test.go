package etcdlock_test

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

// BenchmarkCycle measures an acquire and a release, by goroutines that each use another
// name. `make peers` compares these, and hand-overs, with etcd's own mutex.
func BenchmarkCycle(b *testing.B) {
	d := openDriver(b, etcdtest.Start(b, 1, "--unsafe-no-fsync=false").URL())
	for _, goroutines := range []int{1, 64} {
		b.Run(fmt.Sprint("goroutines=", goroutines), func(b *testing.B) {
			drivertest.BenchmarkCycles(b, goroutines, func(i int) error { return drivertest.Cycle(d, fmt.Sprint("own", i)) })
		})
	}
}

// BenchmarkBesideHolders measures the cost of a step beside many holders of its name.
func BenchmarkBesideHolders(b *testing.B) {
	drivertest.BenchmarkHolders(b, openDriver(b, etcdtest.Start(b, 1).URL()), nil, 1, 100, 1000)
}

// BenchmarkOneName measures 64 clients on one name, with leases of a second.
func BenchmarkOneName(b *testing.B) {
	url := etcdtest.Start(b, 1).URL()
	drivertest.BenchmarkOneName(b, func(b *testing.B) driver.Driver { return open(b, url) })
}
