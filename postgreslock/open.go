package postgreslock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

func init() { engine.Register(openURL, "postgres", "postgresql") }

// Driver is one client of a database. It implements driver.Driver, driver.Signaler,
// driver.Watcher, driver.Lister, driver.LeaseBreaker, driver.FenceRaiser,
// driver.AllAcquirer and driver.Diagnoser.
type Driver struct {
	inner    engine.Noted
	server   *server
	listener *listener
	closed   atomic.Bool
}

// New makes a driver over a pool, which stays the caller's. The database is reached for
// when it is used first. The error is a [*driver.InvalidError].
func New(p *pgxpool.Pool, o *Options) (*Driver, error) {
	c := p.Config().ConnConfig
	return build(pool{p}, o, place(c.Host, c.Port, c.Database), func() {})
}

// NewDB is New for a *sql.DB whose driver is that of github.com/jackc/pgx/v5/stdlib.
func NewDB(db *sql.DB, o *Options) (*Driver, error) {
	if _, ok := db.Driver().(*stdlib.Driver); !ok {
		return nil, &driver.InvalidError{
			What: "database", Problem: fmt.Sprintf("has the driver %T", db.Driver()), Allowed: "that of github.com/jackc/pgx/v5/stdlib",
		}
	}
	return build(database{db}, o, "postgres", func() {})
}

// Open opens the database that a URL names; the package comment has the form. Closing the
// driver closes what was opened. The error is a [*driver.InvalidError] or a
// [*driver.Error], without the password; ctx bounds only the opening.
func Open(ctx context.Context, rawURL string) (*Driver, error) {
	return engine.Open(ctx, rawURL, openURL)
}

func openURL(ctx context.Context, u *url.URL) (*Driver, error) {
	config, o, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	where := place(config.ConnConfig.Host, config.ConnConfig.Port, config.ConnConfig.Database)
	settled, _ := o.withDefaults() // which were looked at above
	s := &server{where: where, options: &settled}
	pooled, err := behindPooler(ctx, config.ConnConfig)
	if err != nil {
		return nil, opening(ctx, s, err)
	}
	if pooled && config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if !pooled { // a pooler may refuse it, or give others a session that was set so
		config.ConnConfig.RuntimeParams["lock_timeout"] = tableWait
	}
	config.BeforeConnect = withoutCancels
	p, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, opening(ctx, s, err)
	}
	d, err := build(pool{p}, o, where, p.Close)
	if err != nil {
		p.Close()
		return nil, err
	}
	d.server.config = config.ConnConfig
	_, free, err := d.server.connect(ctx)
	if err != nil {
		_ = d.Close()
		return nil, opening(ctx, s, err)
	}
	free()
	return d, nil
}

// place is how messages name a database.
func place(host string, port uint16, database string) string {
	return fmt.Sprintf("postgres %s:%d/%s", host, port, database)
}

func build(from conns, o *Options, where string, closePool func()) (*Driver, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &server{conns: from, options: &options, where: where, setUp: make(chan struct{}, 1)}
	d := &Driver{server: s}
	store := newStore(s, func(signal driver.Signal) { d.inner.Deliver(signal) })
	d.listener = store.listener
	over := &table{optimistic.New(store, store.inbox, store.deliver), d, closePool}
	d.inner = engine.NewNoted(locktable.New(over, store.inbox), store.listener.claims, store.listener.begin)
	return d, nil
}

// withoutCancels keeps a connection from asking the server, through a new one, to cancel
// what runs on it when its caller's ctx is over. What waits for a synchronous standby
// then is committed without it, and a fail-over forgets what others were told. And
// PgBouncer 1.18 now and then ends with all its connections when it is asked that
// ("server in bad state"). A statement that goes on to wait for a row does no harm: it
// finds itself late, and see tableWait.
func withoutCancels(_ context.Context, config *pgx.ConnConfig) error {
	var connected atomic.Bool
	dial, after := config.DialFunc, config.AfterConnect
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if connected.Load() {
			return nil, errNoCancel
		}
		return dial(ctx, network, addr)
	}
	config.AfterConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		connected.Store(true)
		if after != nil {
			return after(ctx, c)
		}
		return nil
	}
	return nil
}

var errNoCancel = errors.New("nothing is cancelled")

func opening(ctx context.Context, s *server, err error) error {
	switch ended := ctx.Err(); {
	case errors.Is(ended, context.Canceled):
		return ended
	case ended != nil && !errors.Is(err, ended):
		err = fmt.Errorf("%w (%w)", ended, err)
	}
	return s.typed("open", err) // also what took so long
}

// behindPooler reports whether somebody else's process answers than the one that we were
// told at the beginning: a pooler makes that number up.
func behindPooler(ctx context.Context, config *pgx.ConnConfig) (bool, error) {
	config = config.Copy()
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer c.Close(ctx)
	var pid uint32
	err = c.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return pid != c.PgConn().PID(), err
}

// connections is how many a pool has at the most, if the URL does not say.
const connections = 16

// tableWait is how long a session waits for a table that an operator has locked, or wants
// to: nothing cancels that wait, and each that was given up keeps a connection of the
// server's. For a row each step says by itself how long it waits.
const tableWait = "5s"

// table is what the driver closes.
type table struct {
	*optimistic.Table
	driver *Driver
	pool   func()
}

func (t *table) Close() error {
	t.driver.closed.Store(true)
	t.driver.listener.close()
	err := t.Table.Close()
	t.pool()
	return err
}

// Hear implements locktable.Hearing.
func (t *table) Hear(f func(hears bool)) (stop func()) { return t.driver.listener.hear(f) }
