package mysqllock

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

func init() { engine.Register(openURL, "mysql", "mariadb") }

type lockDriver struct {
	engine.Tracked
	store *store
}

// New makes a driver over a pool of connections. Closing the driver does not close the
// pool. The first call checks the server. Use a separate pool for locks: a renewal needs
// a connection, and a lease is lost if your transactions use all of them. Leave out
// maxAllowedPacket of its DSN: the driver cannot read it. The error is a
// [*driver.InvalidError].
func New(db *sql.DB, o *Options) (driver.Driver, error) {
	if db == nil {
		return nil, &driver.InvalidError{Argument: "pool", Problem: "is nil", Allowed: "an open *sql.DB of go-sql-driver/mysql"}
	}
	return engine.DriverOrError(newDriver(db, o, 0, 0))
}

// Open opens the database of a URL, or of a DSN of go-sql-driver; the package comment has
// the forms. It creates the tables if they are missing. Closing the driver closes its
// pool. The error is a [*driver.InvalidError] or a [*driver.Error], without the password;
// ctx bounds only the opening.
func Open(ctx context.Context, rawURL string) (driver.Driver, error) {
	if err := engine.CheckContext(ctx); err != nil {
		return nil, err
	}
	p, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	return engine.DriverOrError(p.open(ctx))
}

func openURL(ctx context.Context, u *url.URL) (driver.Driver, error) {
	p, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	return engine.DriverOrError(p.open(ctx))
}

// newDriver makes a driver. ownPoolSize is the size of a pool that Open has made, and
// packetOfURL its maxAllowedPacket. They are 0 for the caller's pool.
func newDriver(db *sql.DB, o *Options, ownPoolSize, packetOfURL int) (*lockDriver, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	options.Location = "mysql " + options.Location + options.locationSuffix()
	s := &store{
		server: &server{
			db: db, ownPoolSize: ownPoolSize, packetOfURL: packetOfURL, Options: options, checking: make(chan struct{}, 1),
			namesTable: "`" + options.Prefix + "names`", lostTable: "`" + options.Prefix + "lost`",
		},
		inbox: rand.Text()[:16], claims: engine.NewClaims(),
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.tidier = sqlswap.Tidier{Life: s.life, Running: &s.running, Tidy: s.tidyPage}
	d := &lockDriver{store: s}
	s.deliver = func(signal driver.Signal) { d.Deliver(signal) }
	table := swap.New(s, s.inbox, s.deliver)
	if n := cmp.Or(ownPoolSize, db.Stats().MaxOpenConnections); n > 0 {
		table.LimitSwaps(n)
	}
	d.Tracked = engine.NewTracked(locktable.New(table, s.inbox), s.claims, nil)
	s.running.Go(func() { newPoller(s).Run(s.life) })
	return d, nil
}

func (p *parsedURL) open(ctx context.Context) (*lockDriver, error) {
	inner, err := mysql.NewConnector(p.config)
	if err != nil {
		return nil, invalid("has parameters that contradict each other", "what go-sql-driver/mysql documents")
	}
	db := sql.OpenDB(connector{inner})
	db.SetMaxOpenConns(p.poolSize)
	db.SetMaxIdleConns(p.poolSize)
	db.SetConnMaxIdleTime(5 * time.Minute)
	d, err := newDriver(db, &p.options, p.poolSize, p.config.MaxAllowedPacket)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	if err = d.store.do(ctx, func(context.Context) error { return nil }); err == nil {
		return d, nil
	}
	_ = d.Close()
	e, isDriverError := errors.AsType[*driver.Error](err)
	switch {
	case isDriverError:
		e.Op = "open"
	case errors.Is(err, context.DeadlineExceeded):
		err = &driver.Error{Backend: "mysql " + p.options.Location, Op: "open", Hint: "check the server and the network", Err: err}
	}
	return nil, err
}

// A connectLog keeps the last error that go-sql-driver logs about a connection. Only the
// log shows that the server has refused the client's certificate.
type connectLog struct{ last atomic.Pointer[error] }

type connectLogKey struct{}

// Print implements [mysql.Logger].
func (l *connectLog) Print(v ...any) {
	for _, x := range v {
		if err, ok := x.(error); ok {
			l.last.Store(&err)
		}
	}
}

// A connector opens connections with the settings that the steps rely on. A caller's own
// pool may have other settings, which checkServer checks.
type connector struct{ sqldriver.Connector }

func (c connector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	log := &connectLog{}
	conn, err := c.Connector.Connect(context.WithValue(ctx, connectLogKey{}, log))
	if err != nil {
		if last := log.last.Load(); last != nil && !errors.Is(err, *last) {
			err = fmt.Errorf("%w: %w", err, *last)
		}
		return nil, err
	}
	if execer, ok := conn.(sqldriver.ExecerContext); ok {
		for _, statement := range []string{
			// With these, the server stores bytes unchanged, and limits neither the rows
			// that a statement changes nor those that it returns, even if init_connect or
			// its variables differ.
			"SET autocommit = 1, innodb_lock_wait_timeout = 1, character_set_client = binary, character_set_connection = binary, " +
				"sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', sql_safe_updates = 0, sql_select_limit = " + noLimit,
			"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
		} {
			if _, err := execer.ExecContext(ctx, statement, nil); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
		}
	}
	return conn, nil
}
