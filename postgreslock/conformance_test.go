package postgreslock_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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

// unit is the time of which the suite's times are multiples. In that time even a busy
// machine completes some requests.
const unit = 2 * time.Second

// uncertainty is the width of a statement's window on a machine that is busy with these
// tests, mostly at least.
const uncertainty = unit / 4

func TestConformance(t *testing.T) {
	t.Parallel()
	server, url, _ := fresh(t)
	h := harness(url, server.Addr)
	h.Elsewhere = []func(testing.TB) driver.Driver{
		func(t testing.TB) driver.Driver { return open(t, url+"?schema=other") },
		func(t testing.TB) driver.Driver { return open(t, url+"?prefix=other_") },
	}
	drivertest.Run(t, h)
}

// harness is for drivers of a URL.
func harness(url, addr string) drivertest.Harness {
	return drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, url) },
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return open(t, through(n, url, addr))
		},
		Unit:        unit,
		Uncertainty: uncertainty,

		AllAtOnce: true,
	}
}

// through is the URL of a server at the end of the suite's network, which may hold up a
// client that connects for as long as it likes.
func through(n *drivertest.Network, url, addr string) string {
	return strings.Replace(url, addr, n.Addr(addr), 1) + "?connect_timeout=60"
}

// Behind PgBouncer in transaction mode nothing is pushed, and all else works as without
// it. PgBouncer 1.18 can end when it gets a cancel request, so it gets none.
func TestConformanceBehindPgBouncer(t *testing.T) {
	nightly(t, "a second topology")
	t.Parallel()
	server := pgtest.Start(t)
	pooler := pgtest.StartPooler(t, server, "transaction")
	t.Cleanup(func() {
		said, err := os.ReadFile(filepath.Join(pooler.Dir, "log"))
		if n := bytes.Count(said, []byte("cancel request")); err != nil || n > 0 {
			t.Errorf("PgBouncer was asked %d times to cancel (%v)", n, err)
		}
	})
	drivertest.Run(t, harness(pooler.URL("postgres"), pooler.Addr))
}

// The drivers share the pools of a caller, in a schema with other tables. The first
// client of a subtest uses database/sql, the next one a pgx pool like the clients opened
// by URL, and so on by turns. So each topic is tested on database/sql, and each kind
// reads what the other one stored.
func TestConformanceOfSharedPools(t *testing.T) {
	nightly(t, "a second kind of client")
	t.Parallel()
	server := pgtest.Start(t)
	over := func(db *sql.DB, pool *pgxpool.Pool, second bool) (*postgreslock.Driver, error) {
		o := &postgreslock.Options{Schema: "public", Prefix: "pawl_"}
		if second {
			return asDriver(postgreslock.New(pool, o))
		}
		return asDriver(postgreslock.NewDB(db, o))
	}
	const most = 15 // for each kind, so that clients wait for a connection
	db, pool := dbOf(t, server.URL("postgres"), most), poolOf(t, server.URL("postgres"), most)
	var near, far turns
	h := harness(server.URL("postgres"), server.Addr)
	h.Open = func(t testing.TB) driver.Driver { return opened(t)(over(db, pool, near.second(t))) }
	h.OpenThrough = func(t testing.TB, n *drivertest.Network) driver.Driver {
		url := through(n, server.URL("postgres"), server.Addr)
		return opened(t)(over(dbOf(t, url, most), poolOf(t, url, most), far.second(t)))
	}
	drivertest.Run(t, h)
}

// turns knows whose turn it is in each subtest.
type turns struct{ tests sync.Map }

// second reports whether it is the turn of the second of two.
func (s *turns) second(t testing.TB) bool {
	count, _ := s.tests.LoadOrStore(t, new(atomic.Int64))
	return count.(*atomic.Int64).Add(1)%2 == 0
}

func opened(t testing.TB) func(*postgreslock.Driver, error) *postgreslock.Driver {
	return func(d *postgreslock.Driver, err error) *postgreslock.Driver {
		t.Helper()
		noError(t, err)
		return d
	}
}

func poolOf(t testing.TB, url string, most int32) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	noError(t, err)
	config.MaxConns = most
	pool, err := pgxpool.NewWithConfig(ctx, config)
	noError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func dbOf(t testing.TB, url string, most int) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	noError(t, err)
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(most)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// A pool of database/sql.
func TestAPoolOfDatabaseSQL(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	db := dbOf(t, url, 3)
	d := opened(t)(asDriver(postgreslock.NewDB(db, nil)))
	defer d.Close()
	held, next := mutex("job"), queued("job")
	gets(t, d, held)
	waits(t, openDriver(t, url), next)
	renews(t, d, held)
	releases(t, d, held)
	gets(t, d, next)
	waits(t, d, mutex("job"))
	e, err := d.Inspect(ctx, "job")
	if err != nil || len(e.Holders) != 1 || len(e.Waiters) != 0 {
		t.Errorf("%+v, %v; want one holder", e, err)
	}
	others := []driver.Claim{mutex("one"), mutex("two")}
	if grants, err := d.AcquireAll(ctx, others); err != nil || len(grants) != 2 {
		t.Errorf("AcquireAll: %v, %v", grants, err)
	}
}

func TestAThousandWaitersAreServedInOrder(t *testing.T) {
	nightly(t, "a crowd")
	t.Parallel()
	_, url, _ := fresh(t)
	drivertest.CheckLongQueue(t, openDriver(t, url), openDriver(t, url), 1000)
}
