package drivertest

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

// inMemory returns a suite that treats memlock as a backend in real time.
func inMemory(t *testing.T) *suite {
	m := memlock.NewMemory(nil)
	return &suite{T: t, running: newRunning(), Harness: Harness{
		Open: func(testing.TB) driver.Driver { return m.Driver() },
		Unit: time.Second, Patience: time.Second,
	}}
}
