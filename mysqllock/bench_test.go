package mysqllock_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/mysqltest"
)

// durableServer starts a server that makes each commit durable, as in production. It
// returns the server and a URL.
func durableServer(b *testing.B) (*mysqltest.Server, string) {
	b.Helper()
	s := mysqltest.Start(b, "--innodb-flush-log-at-trx-commit=1")
	return s, "mysql:" + s.DSN(mysqltest.Database) + "?pool=64"
}

// BenchmarkCycle acquires and releases one name for each goroutine, with a driver. For
// comparison, it also measures two updates of a row of the same size, and GET_LOCK, which
// is not durable and keeps a connection for each lock.
func BenchmarkCycle(b *testing.B) {
	s, url := durableServer(b)
	d := openDriver(b, url)
	db := s.Open(b, mysqltest.Database)
	db.SetMaxOpenConns(64)
	db.SetMaxIdleConns(64)
	exec(b, db, "CREATE TABLE bare (name VARBINARY(255) PRIMARY KEY, version BIGINT, entry LONGBLOB)")
	for i := range 64 {
		exec(b, db, fmt.Sprintf("INSERT INTO bare VALUES ('job-%d', 0, '')", i))
	}
	for _, goroutines := range []int{1, 64} {
		for name, cycle := range map[string]func(i int) error{
			"floor": func(i int) error {
				const update = "UPDATE bare SET version = version + 1, entry = x'%0*d' WHERE name = 'job-%d'"
				return execOnOneConn(db, fmt.Sprintf(update, 180, i, i), fmt.Sprintf(update, 40, i, i))
			},
			"pawl": func(i int) error { return drivertest.Cycle(d, fmt.Sprint("job-", i)) },
			"getlock": func(i int) error {
				return execOnOneConn(db, fmt.Sprintf("DO GET_LOCK('job-%d', 10)", i), fmt.Sprintf("DO RELEASE_LOCK('job-%d')", i))
			},
		} {
			b.Run(fmt.Sprint(name, "/", goroutines), func(b *testing.B) { drivertest.BenchmarkCycles(b, goroutines, cycle) })
		}
	}
}

// execOnOneConn runs statements on one connection, one after the other.
func execOnOneConn(db *sql.DB, statements ...string) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkBesideHolders measures the cost of a step beside many holders of its name.
func BenchmarkBesideHolders(b *testing.B) {
	s := mysqltest.Start(b)
	drivertest.BenchmarkHolders(b, openDriver(b, "mysql:"+s.DSN(mysqltest.Database)), nil, 1, 100, 1000)
}

// BenchmarkAll compares pawl.All with a single lock.
func BenchmarkAll(b *testing.B) {
	_, url := durableServer(b)
	drivertest.BenchmarkAll(b, openDriver(b, url))
}
