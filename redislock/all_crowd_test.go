package redislock_test

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/redistest"
)

// The clients of a crowd never deadlock, and none of them starves.
func TestACrowdTakesSeveralOfTenNames(t *testing.T) {
	nightly(t, "64 clients")
	server := redistest.Start(t)
	drivertest.TestAllInACrowd(t, func() driver.Driver { return openDriver(t, "redis://"+server.Addr) })
}

// BenchmarkAll measures pawl.All beside one lock.
func BenchmarkAll(b *testing.B) {
	server := redistest.Start(b)
	drivertest.BenchmarkAll(b, openDriver(b, "redis://"+server.Addr))
}
