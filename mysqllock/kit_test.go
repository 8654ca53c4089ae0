package mysqllock_test

import (
	"database/sql"
	"testing"

	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/mysqllock"
)

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// asDriver converts the driver of New or Open to its own type, which has all its methods.
var asDriver = servertest.As[*mysqllock.Driver]

var (
	isRefused       = servertest.Waits
	wantHigherFence = servertest.Rises
	renews          = servertest.Renews
	noError         = basictest.NoError
	eventually      = basictest.Eventually
	skipIfShort     = basictest.SkipIfShort
	lease           = servertest.Lease
	mutex           = servertest.Mutex
	queued          = servertest.Queued
	gets            = servertest.Gets
	releases        = servertest.Releases
	cycle           = servertest.Cycle
	wantDriverError = servertest.WantDriverError
	finds           = servertest.Finds
	begin           = servertest.Begin
	exec            = servertest.Exec
	listen          = servertest.Listen
	wantSignal      = servertest.Hear
	openDriver      = servertest.OpenDriver[*mysqllock.Driver]
)

// freshDatabase returns the shared server, a pool for a new database of it, and a driver
// over the pool.
func freshDatabase(t testing.TB) (*mysqltest.Server, *sql.DB, *mysqllock.Driver) {
	t.Helper()
	s := mysqltest.Shared(t)
	db := s.Open(t, s.NewDatabase(t))
	return s, db, driverOver(t, db, nil)
}

// driverOver makes a driver that is closed when the test ends.
func driverOver(t testing.TB, db *sql.DB, o *mysqllock.Options) *mysqllock.Driver {
	t.Helper()
	d, err := asDriver(mysqllock.New(db, o))
	noError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// databaseOf returns the name of a pool's database.
func databaseOf(t testing.TB, db *sql.DB) (database string) {
	t.Helper()
	noError(t, db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&database))
	return database
}

// countStatements returns the number of statements that the server has received.
func countStatements(t testing.TB, db *sql.DB) int {
	t.Helper()
	return status(t, db, "Questions")
}

// status returns a counter of the server.
func status(t testing.TB, db *sql.DB, variable string) (n int) {
	t.Helper()
	noError(t, db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE '"+variable+"'").Scan(&variable, &n))
	return n
}
