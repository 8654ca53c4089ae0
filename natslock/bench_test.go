package natslock_test

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/natstest"
)

// servers runs a benchmark on one server, and on a cluster.
func servers(b *testing.B, f func(b *testing.B, url string)) {
	b.Run("server", func(b *testing.B) { f(b, "nats://"+natstest.Start(b, "").Addr) })
	b.Run("cluster", func(b *testing.B) { f(b, "nats://"+natstest.StartCluster(b, 3)[0].Addr+"?replicas=3") })
}

// BenchmarkCycle measures an acquire and a release, by goroutines that each use another
// name. `make peers` compares these, and hand-overs, with the least possible cost.
func BenchmarkCycle(b *testing.B) {
	servers(b, func(b *testing.B, url string) {
		d := openDriver(b, url)
		for _, goroutines := range []int{1, 64} {
			b.Run(fmt.Sprint("goroutines=", goroutines), func(b *testing.B) {
				drivertest.BenchmarkCycles(b, goroutines, func(i int) error { return drivertest.Cycle(d, fmt.Sprint("n", i)) })
			})
		}
	})
}

// BenchmarkRenew renews a thousand leases in one call.
func BenchmarkRenew(b *testing.B) {
	servers(b, func(b *testing.B, url string) { drivertest.BenchmarkRenew(b, openDriver(b, url)) })
}

// BenchmarkBesideHolders measures the cost of a step beside many holders of its name.
func BenchmarkBesideHolders(b *testing.B) {
	drivertest.BenchmarkHolders(b, openDriver(b, "nats://"+natstest.Start(b, "").Addr), nil, 1, 100, 1000)
}

// BenchmarkOneName measures 64 clients on one name, with leases of a second.
func BenchmarkOneName(b *testing.B) {
	url := "nats://" + natstest.Start(b, "").Addr
	drivertest.BenchmarkOneName(b, func(b *testing.B) driver.Driver { return open(b, url) })
}

// BenchmarkAll measures pawl.All beside one lock.
func BenchmarkAll(b *testing.B) {
	servers(b, func(b *testing.B, url string) { drivertest.BenchmarkAll(b, openDriver(b, url)) })
}
