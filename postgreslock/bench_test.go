package postgreslock_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// durableServer starts a server with fsync.
func durableServer(b *testing.B) *pgtest.Server {
	return pgtest.Start(b, "fsync=on", "max_wal_size=1GB")
}

// BenchmarkCycle measures an acquire and a release, in one goroutine and in 64, each with
// its own name. For comparison, Floor measures two commits on a table of the same form.
func BenchmarkCycle(b *testing.B) {
	for _, goroutines := range []int{1, 64} {
		server := durableServer(b)
		d := openDriver(b, server.URL("postgres"))
		pool := poolOf(b, server.URL("postgres"), 16)
		floor := floorTable(b, pool, goroutines)
		b.Run(fmt.Sprintf("Floor%d", goroutines), func(b *testing.B) {
			drivertest.BenchmarkCycles(b, goroutines, func(i int) error {
				for range 2 {
					if _, err := pool.Exec(ctx, floor, i, make([]byte, 120)); err != nil {
						return err
					}
				}
				return nil
			})
		})
		b.Run(fmt.Sprintf("Pawl%d", goroutines), func(b *testing.B) {
			drivertest.BenchmarkCycles(b, goroutines, func(i int) error { return drivertest.Cycle(d, fmt.Sprint("job ", i)) })
		})
	}
}

// floorTable creates a table like pawl.locks, and returns a statement that changes a row.
func floorTable(b *testing.B, pool *pgxpool.Pool, rows int) string {
	b.Helper()
	for _, sql := range []string{
		"CREATE TABLE floor (id int PRIMARY KEY, version bigint NOT NULL, entry bytea NOT NULL) WITH (fillfactor = 50)",
		fmt.Sprintf("INSERT INTO floor SELECT i, 0, '' FROM generate_series(0, %d) i", rows),
	} {
		must(pool.Exec(ctx, sql))(b)
	}
	return "UPDATE floor SET version = version + 1, entry = $2 WHERE id = $1"
}

// BenchmarkBesideHolders measures the cost of a step beside many holders of its name.
func BenchmarkBesideHolders(b *testing.B) {
	drivertest.BenchmarkHolders(b, openDriver(b, durableServer(b).URL("postgres")), nil, 1, 100, 1000)
}

// BenchmarkOneName measures 64 clients on one name, with leases of a second.
func BenchmarkOneName(b *testing.B) {
	url := durableServer(b).URL("postgres")
	drivertest.BenchmarkOneName(b, func(b *testing.B) driver.Driver { return open(b, url) })
}
