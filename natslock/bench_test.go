package natslock_test

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/natstest"
)

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
	b.Run("server", func(b *testing.B) { drivertest.BenchmarkAll(b, openDriver(b, "nats://"+natstest.Start(b, "").Addr)) })
	b.Run("cluster", func(b *testing.B) {
		drivertest.BenchmarkAll(b, openDriver(b, "nats://"+natstest.StartCluster(b, 3)[0].Addr+"?replicas=3"))
	})
}
