package drivertest

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

// inMemory is a suite on a backend whose time is real, as far as it can tell.
func inMemory(t *testing.T) *suite {
	m := memlock.NewMemory(nil)
	return &suite{T: t, running: newRunning(), Harness: Harness{
		Open: func(testing.TB) driver.Driver { return m.Driver() },
		Unit: time.Second, Patience: time.Second,
	}}
}
