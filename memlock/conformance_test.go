package memlock_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/memlock"
)

func TestConformance(t *testing.T) {
	clock := memlock.NewClock(time.Now())
	memory := memlock.NewMemory(&memlock.Options{Now: clock.Now})
	drivertest.Run(t, drivertest.Harness{
		Open:      func(testing.TB) driver.Driver { return memory.Driver() },
		Clock:     clock,
		NoNetwork: true,
		AtomicAll: true,
	})
}

// The suite also runs in real time, as for a server's driver.
func TestConformanceOnItsOwnClock(t *testing.T) {
	memory := memlock.NewMemory(nil)
	drivertest.Run(t, drivertest.Harness{
		Open:      func(testing.TB) driver.Driver { return memory.Driver() },
		Unit:      400 * time.Millisecond,
		NoNetwork: true,
		AtomicAll: true,
	})
}
