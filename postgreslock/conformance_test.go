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

// unit is the basis of the suite's times. Even a busy machine completes some requests in
// this time.
const unit = 2 * time.Second

// uncertainty is the usual width of a statement's window on a machine that is busy with
// these tests.
const uncertainty = unit / 4

func TestConformance(t *testing.T) {
	t.Parallel()
	server, url, _ := freshDatabase(t)
	h := harness(url, server.Addr)
	h.OtherStores = []func(testing.TB) driver.Driver{
		func(t testing.TB) driver.Driver { return open(t, url+"?schema=other") },
		func(t testing.TB) driver.Driver { return open(t, url+"?prefix=other_") },
	}
	drivertest.Run(t, h)
}

// harness returns a harness that opens drivers by URL.
func harness(url, addr string) drivertest.Harness {
	return drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, url) },
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return open(t, urlThrough(n, url, addr))
		},
		Unit:        unit,
		Uncertainty: uncertainty,

		AtomicAll: true,
	}
}

// urlThrough returns the URL of a server behind the suite's network. Its connect_timeout
// is long, because the network may delay a client that connects.
func urlThrough(n *drivertest.Network, url, addr string) string {
	return strings.Replace(url, addr, n.Addr(addr), 1) + "?connect_timeout=60"
}

// Behind PgBouncer in transaction mode there is no push, and everything else works. The
// driver sends no cancel request, which can crash PgBouncer 1.18.
func TestConformanceBehindPgBouncer(t *testing.T) {
	skipIfShort(t, "a second topology")
	t.Parallel()
	server := pgtest.Start(t)
	pooler := pgtest.StartPooler(t, server, "transaction")
	t.Cleanup(func() {
		log, err := os.ReadFile(filepath.Join(pooler.Dir, "log"))
		if n := bytes.Count(log, []byte("cancel request")); err != nil || n > 0 {
			t.Errorf("PgBouncer got %d cancel requests, want none (%v)", n, err)
		}
	})
	drivertest.Run(t, harness(pooler.URL("postgres"), pooler.Addr))
}

// The drivers share the pools of a caller, in a schema with other tables. The clients of
// a subtest alternate between database/sql and a pgx pool. So each subtest uses
// database/sql, and each kind of client reads entries that the other kind has stored.
func TestConformanceOfSharedPools(t *testing.T) {
	skipIfShort(t, "a second kind of client")
	t.Parallel()
	server := pgtest.Start(t)
	newDriver := func(db *sql.DB, pool *pgxpool.Pool, second bool) (*postgreslock.Driver, error) {
		o := &postgreslock.Options{Schema: "public", Prefix: "pawl_"}
		if second {
			return asDriver(postgreslock.New(pool, o))
		}
		return asDriver(postgreslock.NewDB(db, o))
	}
	const maxConns = 15 // of each pool: so few that clients wait for a connection
	db, pool := dbOf(t, server.URL("postgres"), maxConns), poolOf(t, server.URL("postgres"), maxConns)
	var direct, proxied turns
	h := harness(server.URL("postgres"), server.Addr)
	h.Open = func(t testing.TB) driver.Driver { return mustOpen(t)(newDriver(db, pool, direct.second(t))) }
	h.OpenThrough = func(t testing.TB, n *drivertest.Network) driver.Driver {
		url := urlThrough(n, server.URL("postgres"), server.Addr)
		return mustOpen(t)(newDriver(dbOf(t, url, maxConns), poolOf(t, url, maxConns), proxied.second(t)))
	}
	drivertest.Run(t, h)
}

// turns counts the clients of each subtest. They alternate between two kinds.
type turns struct{ tests sync.Map }

// second reports whether the next client is of the second kind.
func (s *turns) second(t testing.TB) bool {
	count, _ := s.tests.LoadOrStore(t, new(atomic.Int64))
	return count.(*atomic.Int64).Add(1)%2 == 0
}

func mustOpen(t testing.TB) func(*postgreslock.Driver, error) *postgreslock.Driver {
	return func(d *postgreslock.Driver, err error) *postgreslock.Driver {
		t.Helper()
		noError(t, err)
		return d
	}
}

func dbOf(t testing.TB, url string, maxConns int) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	noError(t, err)
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(maxConns)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestLocksOverAPoolOfDatabaseSQL(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d := mustOpen(t)(asDriver(postgreslock.NewDB(dbOf(t, url, 3), nil)))
	defer d.Close()
	held, next := mutex("job"), queued("job")
	gets(t, d, held)
	isRefused(t, openDriver(t, url), next)
	renews(t, d, held)
	releases(t, d, held)
	gets(t, d, next)
	others := []driver.Claim{mutex("one"), mutex("two")}
	if grants, err := d.AcquireAll(ctx, others); err != nil || len(grants) != 2 {
		t.Errorf("AcquireAll: %v, %v; want two grants", grants, err)
	}
}

func TestAThousandWaitersAreServedInOrder(t *testing.T) {
	skipIfShort(t, "a thousand waiters")
	t.Parallel()
	_, url, _ := freshDatabase(t)
	drivertest.CheckLongQueue(t, openDriver(t, url), openDriver(t, url), 1000)
}
