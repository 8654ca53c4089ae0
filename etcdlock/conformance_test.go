package etcdlock_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

func TestConformance(t *testing.T) {
	c := etcdtest.Start(t, 1)
	uses(t, c.URL())
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, c.URL()) },
		Hold: func(t testing.TB) (driver.Driver, func() func()) { return slow(t, c, "") },
		Unit: 4 * time.Second,
		Blur: time.Second,
	})
}
