package postgreslock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

func init() { engine.Register(openURL, "postgres", "postgresql") }

type lockDriver struct {
	engine.TrackedAll
	store *store
}

// New makes a driver over a pool. Closing the driver does not close the pool. The driver
// connects when it is first used. It also runs the pool's BeforeConnect for its listening
// connection. Use a separate pool for locks: a renewal needs a connection, and a lease is
// lost if your transactions use all of them. The error is a [*driver.InvalidError].
func New(p *pgxpool.Pool, o *Options) (driver.Driver, error) {
	if p == nil {
		return nil, &driver.InvalidError{Argument: "pool", Problem: "is nil", Allowed: "an open *pgxpool.Pool"}
	}
	return engine.DriverOrError(newDriverOver(pool{p}, o, location(p.Config().ConnConfig)))
}

// NewDB is New for a *sql.DB whose driver is github.com/jackc/pgx/v5/stdlib. The
// listening connection copies the settings of a pooled connection, with the password.
func NewDB(db *sql.DB, o *Options) (driver.Driver, error) {
	if db == nil {
		return nil, &driver.InvalidError{Argument: "database", Problem: "is nil", Allowed: "an open *sql.DB of github.com/jackc/pgx/v5/stdlib"}
	}
	if _, ok := db.Driver().(*stdlib.Driver); !ok {
		return nil, &driver.InvalidError{
			Argument: "database", Problem: fmt.Sprintf("has the driver %T", db.Driver()), Allowed: "the driver of github.com/jackc/pgx/v5/stdlib",
		}
	}
	return engine.DriverOrError(newDriverOver(database{db}, o, "postgres"))
}

// Open opens the database of a URL; the package comment has the form. Closing the driver
// closes its pool. The error is a [*driver.InvalidError] or a [*driver.Error], without
// the password; ctx bounds only the opening.
func Open(ctx context.Context, rawURL string) (driver.Driver, error) {
	return engine.Open(ctx, rawURL, openURL)
}

func openURL(ctx context.Context, u *url.URL) (driver.Driver, error) {
	parsed, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	config := parsed.config
	dbLocation := location(config.ConnConfig)
	s := newServer(parsed.options, dbLocation)
	s.passwordFromFile = parsed.passwordFromFile
	pooled, err := behindPooler(ctx, config.ConnConfig)
	if err != nil {
		return nil, openError(ctx, s, err)
	}
	if pooled && config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if !pooled { // a pooler may refuse lock_timeout, or leave it set for other clients
		config.ConnConfig.RuntimeParams["lock_timeout"] = tableLockTimeout
	}
	readFiles := config.BeforeConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		disableCancelRequests(c)
		return readFiles(ctx, c)
	}
	p, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, openError(ctx, s, err)
	}
	s.conns = pool{p}
	s.config.Store(config.ConnConfig)
	d := newDriver(s, p.Close)
	_, free, err := s.connect(ctx)
	if err != nil {
		_ = d.Close()
		return nil, openError(ctx, s, err)
	}
	free()
	return d, nil
}

func location(c *pgx.ConnConfig) string {
	return fmt.Sprintf("postgres %s:%d/%s", c.Host, c.Port, c.Database)
}

func newDriverOver(from conns, o *Options, dbLocation string) (*lockDriver, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := newServer(&options, dbLocation)
	s.conns = from
	return newDriver(s, func() {}), nil
}

// newDriver makes a driver over a server whose conns are set.
func newDriver(s *server, closePool func()) *lockDriver {
	d := &lockDriver{}
	store := newStore(s, closePool, func(signal driver.Signal) { d.Deliver(signal) })
	d.store = store
	locks := &table{swap.New(store, store.inbox, store.deliver), store.listener}
	d.TrackedAll = engine.NewTrackedAll(locktable.NewGrouped(locks, store.inbox), store.listener.claims, store.listener.listenForClaim)
	return d
}

// Renew implements driver.Driver.
func (d *lockDriver) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	return d.TrackedAll.Renew(context.WithValue(ctx, leaseCountKey{}, len(leases)), leases)
}

// disableCancelRequests prevents cancel requests: when the caller's ctx ends, pgx would
// ask the server, on a new connection, to cancel the statement. If the statement waits
// for a synchronous standby, PostgreSQL would then commit at once, and a failover could
// lose a grant that other clients have seen. PgBouncer 1.18 may also crash when it gets a
// cancel request ("server in bad state"). A statement that still waits for a row does no
// harm: after its window it changes nothing, and its lock_timeout ends its wait.
func disableCancelRequests(config *pgx.ConnConfig) {
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if network == cancelNetwork {
			return nil, errNoCancel
		}
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return noCancelConn{c}, nil
	}
}

// A noCancelConn has an address that disableCancelRequests refuses to dial: pgx dials it
// only for a cancel request.
type noCancelConn struct{ net.Conn }

func (c noCancelConn) RemoteAddr() net.Addr {
	return &net.UnixAddr{Net: cancelNetwork, Name: c.Conn.RemoteAddr().String()}
}

const cancelNetwork = "only for cancel requests"

var errNoCancel = errors.New("pawl sends no cancel requests")

func openError(ctx context.Context, s *server, err error) error {
	switch ctxErr := ctx.Err(); {
	case errors.Is(ctxErr, context.Canceled):
		return ctxErr
	case ctxErr != nil && !errors.Is(err, ctxErr):
		err = fmt.Errorf("%w (%w)", ctxErr, err) // err has the reason for the delay
	}
	return s.opError("open", err)
}

// behindPooler reports whether a pooler answers. A pooler announces its own process ID
// when a client connects, which is not the ID of the server process.
func behindPooler(ctx context.Context, config *pgx.ConnConfig) (bool, error) {
	config = config.Copy()
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	disableCancelRequests(config)
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer c.Close(ctx)
	var pid uint32
	err = c.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return pid != c.PgConn().PID(), err
}

// defaultMaxConns is the default of pool_max_conns.
const defaultMaxConns = 16

// tableLockTimeout bounds a session's wait for a table that an operator has locked, or is
// about to lock. No caller cancels that wait, so without a bound each abandoned statement
// would keep a connection. For a locked row, each step sets its own limit.
const tableLockTimeout = "5s"

// table is the driver's table of locks. A listener receives its signals.
type table struct {
	*swap.Table
	listener *listener
}

// Subscribe implements locktable.Pushing.
func (t *table) Subscribe(f func(up bool)) (stop func()) { return t.listener.listenForWatch(f) }
