package mysqllock_test

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/mysqllock"
)

func TestConformance(t *testing.T) {
	s := mysqltest.Shared(t)
	database := s.NewDatabase(t)
	db := s.Open(t, database)
	over := func(t testing.TB) driver.Driver {
		d, err := mysqllock.New(db, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	drivertest.Run(t, drivertest.Harness{
		Open: over,
		Hold: func(t testing.TB) (driver.Driver, func() func()) {
			road := redistest.StartProxy(t, &redistest.Server{Addr: s.Addr})
			db, err := mysqltest.OpenDSN(mysqltest.DSN(road.Addr, database))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			d, err := mysqllock.New(db, nil)
			if err != nil {
				t.Fatal(err)
			}
			return d, road.Hold
		},
	})
}
