package postgreslock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/url"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/sqltable"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

func init() { engine.Register(openURL, "postgres", "postgresql") }

// Driver is one client of a database. It implements driver.Driver, driver.Signaler,
// driver.Watcher, driver.Lister, driver.LeaseBreaker, driver.FenceRaiser,
// driver.AllAcquirer and driver.Diagnoser.
type Driver struct {
	*locktable.Driver
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

// patient is how many connections of a pool may wait for rows that are locked for long.
func patient(connections int) int { return max(1, connections/4) }

func build(from conns, o *Options, where string, closePool func()) (*Driver, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	inbox := rand.Text()[:16]
	s := &server{conns: from, options: &options, where: where, setUp: make(chan struct{}, 1)}
	d := &Driver{server: s}
	deliver := func(signal driver.Signal) {
		d.listener.heard(signal)
		d.Deliver(signal)
	}
	store := newStore(s)
	d.listener = newListener(store, inbox, deliver)
	slow := sqltable.New(&batches{server: s}, sqltable.Options{
		Dialect: options.dialect(&store.hush), Inbox: inbox, Deliver: deliver, Retention: options.Retention,
		Patient: patient(from.most()), Properties: d.properties, Failed: s.failed, Told: store.told,
	})
	store.slow = slow
	fast := optimistic.New(store, inbox, deliver).Beside(slow)
	d.Driver = locktable.New(&table{fast, d, closePool}, inbox)
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

// opening is the error of an Open.
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

// Scan implements locktable.Table. That of sqltable ends at a row that is damaged; the
// names behind it are read one by one.
func (t *table) Scan(ctx context.Context, prefix string) iter.Seq2[locktable.Row, error] {
	return func(yield func(locktable.Row, error) bool) {
		damaged := ""
		for row, err := range t.Table.Scan(ctx, prefix) {
			if err != nil {
				damaged = row.Name
			}
			if !yield(row, err) {
				return
			}
		}
		for damaged != "" {
			names, err := t.driver.server.names(ctx, prefix, damaged)
			damaged = ""
			for _, name := range names {
				row := locktable.Row{Name: name}
				row.Entry, row.Now, err = t.Read(ctx, name)
				if _, corrupt := errors.AsType[*locktable.CorruptError](err); err != nil && !corrupt {
					break
				}
				if !yield(row, err) {
					return
				}
				damaged, err = name, nil
			}
			if err != nil {
				yield(locktable.Row{}, err)
				return
			}
		}
	}
}

func (d *Driver) properties() driver.Properties {
	pushes := !d.server.options.NoPush && d.listener.pushes()
	return driver.Properties{
		Backend:       "postgres",
		Where:         d.server.place(),
		Clock:         "server",
		FenceSurvives: "crashes of the server, and loss of its data, as long as its clock is not set back past the last grant",
		MinTTL:        driver.MinTTL,
		Push:          pushes,
		PushesChanges: pushes,
	}
}
