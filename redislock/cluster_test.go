package redislock_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/redistest"
)

func TestConformanceOnACluster(t *testing.T) {
	nodes := redistest.StartCluster(t, 3)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, "redis://"+nodes[0].Addr+","+nodes[1].Addr) },
		Unit: time.Second,
	})
}

func TestConformanceWithoutRESP3(t *testing.T) {
	server := redistest.Start(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, "redis://"+server.Addr+"?protocol=2") },
		Unit: time.Second,
	})
}
