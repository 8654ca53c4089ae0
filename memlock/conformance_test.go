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

// In real time, as a server's driver runs it.
func TestConformanceOnItsOwnClock(t *testing.T) {
	memory := memlock.NewMemory(nil)
	drivertest.Run(t, drivertest.Harness{
		Open:      func(testing.TB) driver.Driver { return memory.Driver() },
		Unit:      400 * time.Millisecond,
		NoNetwork: true,

		AtomicAll: true,
	})
}
