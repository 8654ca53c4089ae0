package postgreslock_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/postgreslock"
)

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// asDriver converts the driver of New or Open to its own type, which has all its methods.
var asDriver = servertest.As[*postgreslock.Driver]

var (
	wantHigherFence = servertest.Rises
	noError         = basictest.NoError
	eventually      = basictest.Eventually
	skipIfShort     = basictest.SkipIfShort
	lease           = servertest.Lease
	mutex           = servertest.Mutex
	queued          = servertest.Queued
	gets            = servertest.Gets
	isRefused       = servertest.Waits
	renews          = servertest.Renews
	releases        = servertest.Releases
	cycle           = servertest.Cycle
	listen          = servertest.Listen
	wantSignal      = servertest.Hear
	wantDriverError = servertest.WantDriverError
	open            = servertest.Open[*postgreslock.Driver]
	openDriver      = servertest.OpenDriver[*postgreslock.Driver]
)

// openThroughProxy opens a driver whose requests go through a proxy.
func openThroughProxy(t testing.TB, server *pgtest.Server, url string) (*postgreslock.Driver, *servertest.Proxy) {
	t.Helper()
	proxy := servertest.StartProxy(t, server.Addr)
	return openDriver(t, strings.Replace(url, server.Addr, proxy.Addr, 1)), proxy
}

// driverOver makes a driver over a pool, and closes it when the test ends.
func driverOver(t testing.TB, pool *pgxpool.Pool, o *postgreslock.Options) *postgreslock.Driver {
	t.Helper()
	d := mustOpen(t)(asDriver(postgreslock.New(pool, o)))
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// poolOf opens a pool as a caller does, with changes to its configuration.
func poolOf(t testing.TB, url string, maxConns int32, changes ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	noError(t, err)
	config.MaxConns = maxConns
	for _, change := range changes {
		change(config)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	noError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// conn opens a connection outside of the drivers, as another program would.
func conn(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(ctx, url)
	noError(t, err)
	t.Cleanup(func() { _ = c.Close(ctx) })
	return c
}

func exec(t testing.TB, c *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := c.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}
