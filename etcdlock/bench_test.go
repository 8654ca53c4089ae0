package etcdlock_test

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

// BenchmarkBesideHolders measures the cost of a step beside many holders of its name.
func BenchmarkBesideHolders(b *testing.B) {
	drivertest.BenchmarkHolders(b, openDriver(b, etcdtest.Start(b, 1).URL()), nil, 1, 100, 1000)
}

// BenchmarkOneName measures 64 clients on one name, with leases of a second.
func BenchmarkOneName(b *testing.B) {
	url := etcdtest.Start(b, 1).URL()
	drivertest.BenchmarkOneName(b, func(b *testing.B) driver.Driver { return open(b, url) })
}
