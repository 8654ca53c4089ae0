package postgreslock_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/postgreslock"
)

// unit is what the suite's times are multiples of. Between two of them a busy machine has
// to get some requests done.
const unit = 2 * time.Second

func TestConformance(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, server.URL("postgres")) },
		Unit: unit,
	})
}

func open(t testing.TB, url string) *postgreslock.Driver {
	t.Helper()
	d, err := postgreslock.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
