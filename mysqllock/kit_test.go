package mysqllock_test

import (
	"database/sql"
	"testing"

	"github.com/pawl-go/pawl/internal/claimtest"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/mysqllock"
)

// The steps of a test.
var (
	mutex    = claimtest.Mutex
	queued   = claimtest.Queued
	lease    = claimtest.Lease
	gets     = claimtest.Gets
	releases = claimtest.Releases
)

// fresh returns a new database of the shared server, a pool for it, and a driver over
// that.
func fresh(t testing.TB) (*mysqltest.Server, *sql.DB, *mysqllock.Driver) {
	t.Helper()
	s := mysqltest.Shared(t)
	db := s.Open(t, s.NewDatabase(t))
	return s, db, over(t, db, nil)
}

// over makes a driver that is closed when the test ends.
func over(t testing.TB, db *sql.DB, o *mysqllock.Options) *mysqllock.Driver {
	t.Helper()
	d, err := mysqllock.New(db, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// start opens a driver that is closed when the test ends.
func start(t testing.TB, url string) *mysqllock.Driver {
	t.Helper()
	d, err := mysqllock.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// name is the name of a pool's database.
func name(t testing.TB, db *sql.DB) (database string) {
	t.Helper()
	if err := db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&database); err != nil {
		t.Fatal(err)
	}
	return database
}
