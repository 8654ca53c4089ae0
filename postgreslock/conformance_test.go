package postgreslock_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/postgreslock"
)

// unit is what the suite's times are multiples of. Between two of them a busy machine has
// to get some requests done.
const unit = 2 * time.Second

// blur is how wide the window of a statement is on a machine that is busy with these
// tests, if not all of the time.
const blur = unit / 4

func TestConformance(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, server.URL("postgres")) },
		Elsewhere: []func(testing.TB) driver.Driver{
			func(t testing.TB) driver.Driver { return open(t, server.URL("postgres")+"?schema=other") },
			func(t testing.TB) driver.Driver { return open(t, server.URL("postgres")+"?prefix=other_") },
		},
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return open(t, through(n, server.URL("postgres"), server.Addr))
		},
		Unit: unit,
		Blur: blur,

		AllAtOnce: true,
	})
}

// through is the URL of a server at the end of the suite's network.
func through(n *drivertest.Network, url, addr string) string {
	return strings.Replace(url, addr, n.Addr(addr), 1)
}

// Behind PgBouncer in transaction mode nothing is pushed, and all else is as it is
// without.
func TestConformanceBehindPgBouncer(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	pooler := pgtest.StartPooler(t, server, "transaction")
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, pooler.URL("postgres")) },
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return open(t, through(n, pooler.URL("postgres"), pooler.Addr))
		},
		Unit: unit,
		Blur: blur,

		AllAtOnce: true,
	})
}

// Drivers that share a pool of the caller's, in a schema with tables of others.
func TestConformanceOfASharedPool(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	pool := poolOf(t, server.URL("postgres"), 30)
	over := func(t testing.TB, pool *pgxpool.Pool) driver.Driver {
		d, err := postgreslock.New(pool, &postgreslock.Options{Schema: "public", Prefix: "pawl_"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return over(t, pool) },
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return over(t, poolOf(t, through(n, server.URL("postgres"), server.Addr), 30))
		},
		Unit: unit,
		Blur: blur,

		AllAtOnce: true,
	})
}

func TestConformanceOfASharedDB(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	db := dbOf(t, server.URL("postgres"))
	over := func(t testing.TB, db *sql.DB) driver.Driver {
		d, err := postgreslock.NewDB(db, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return over(t, db) },
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return over(t, dbOf(t, through(n, server.URL("postgres"), server.Addr)))
		},
		Unit: unit,
		Blur: blur,

		AllAtOnce: true,
	})
}

func open(t testing.TB, url string) *postgreslock.Driver {
	t.Helper()
	d, err := postgreslock.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func poolOf(t testing.TB, url string, most int32) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = most
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func dbOf(t testing.TB, url string) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(30)
	t.Cleanup(func() { _ = db.Close() })
	return db
}
