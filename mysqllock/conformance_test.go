package mysqllock_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/mysqltest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	s := mysqltest.Shared(t)
	database := s.NewDatabase(t)
	db := s.Open(t, database)
	drivertest.Run(t, drivertest.Harness{
		Open:     func(t testing.TB) driver.Driver { return driverOver(t, db, nil) },
		Sessions: sessionOpeners(s, database),
		OtherStores: []func(testing.TB) driver.Driver{
			func(t testing.TB) driver.Driver { return openDriver(t, "mysql:"+s.DSN(database)+"?prefix=other_") },
			func(t testing.TB) driver.Driver { return openDriver(t, "mysql:"+s.DSN(s.NewDatabase(t))) },
		},
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return driverOver(t, mysqltest.OpenDSN(t, mysqltest.DSN(n.Addr(s.Addr), database)), nil)
		},
	})
}

// sessionOpeners returns functions that open drivers. The sessions of their pools have
// unusual settings for the syntax of statements, comparisons and times.
func sessionOpeners(s *mysqltest.Server, database string) (all []func(testing.TB) driver.Driver) {
	for _, variables := range []string{
		"charset=latin1&time_zone='%2B12:45'&sql_mode='ANSI_QUOTES,PAD_CHAR_TO_FULL_LENGTH,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE'&tx_isolation='SERIALIZABLE'",
		"charset=cp932&time_zone='-03:30'&sql_mode=''&clientFoundRows=true",
		"collation=utf8mb4_general_ci&sql_mode='ORACLE,EMPTY_STRING_IS_NULL,TIME_ROUND_FRACTIONAL,STRICT_ALL_TABLES,NO_ZERO_DATE'&tx_isolation='REPEATABLE-READ'&innodb_snapshot_isolation=1",
	} {
		all = append(all, func(t testing.TB) driver.Driver { return driverOver(t, openWith(t, s, database, variables), nil) })
	}
	return append(all, func(t testing.TB) driver.Driver { return openDriver(t, "mysql:"+s.DSN(database)) })
}

// openWith opens a pool of go-sql-driver with these parameters. Unknown parameters set
// variables of each session.
func openWith(t testing.TB, s *mysqltest.Server, database, parameters string) *sql.DB {
	t.Helper()
	return mysqltest.OpenDSN(t, s.DSN(database)+"?"+strings.ReplaceAll(parameters, "'", "%27"))
}

func TestTwoHundredWaitersAreServedInOrder(t *testing.T) {
	skipIfShort(t, "200 waiters")
	s := mysqltest.Shared(t)
	url := "mysql:" + s.DSN(s.NewDatabase(t))
	drivertest.CheckLongQueue(t, openDriver(t, url), openDriver(t, url), 200)
}
