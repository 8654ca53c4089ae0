package sqlitelock

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
)

func TestConformance(t *testing.T) {
	c := clock()
	folder, files := t.TempDir(), 0
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver {
			d, err := Open(ctx, filepath.Join(folder, strconv.Itoa(files)), &Options{Now: c.Now})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Clock: c,
		Wipe:  func(testing.TB) { files++ }, // a new file: all that was stored is gone
	})
}

// In real time, as users have it.
func TestConformanceOnTheHostsClock(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes SQLite thirty times slower, and leases of half a second too short; TestConformance runs with it")
	}
	path := file(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver {
			d, err := Open(ctx, path, nil)
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Unit: 400 * time.Millisecond,
	})
}
