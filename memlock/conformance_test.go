package memlock_test

import (
	"flag"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/memlock"
	"go.uber.org/goleak"
)

func TestConformance(t *testing.T) {
	clock := memlock.NewClock(time.Now())
	memory := memlock.NewMemory(&memlock.Options{Now: clock.Now})
	drivertest.Run(t, drivertest.Harness{
		Open:  func(testing.TB) driver.Driver { return memory.Driver() },
		Clock: clock,
	})
}

// In real time, as a server's driver runs it.
func TestConformanceOnItsOwnClock(t *testing.T) {
	memory := memlock.NewMemory(nil)
	drivertest.Run(t, drivertest.Harness{
		Open: func(testing.TB) driver.Driver { return memory.Driver() },
		Unit: 400 * time.Millisecond,
	})
}

// A subtest that lets time pass holds its place among the parallel ones while it sleeps:
// with as many places as processors, the real time of the whole suite would be the sum of
// theirs.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
