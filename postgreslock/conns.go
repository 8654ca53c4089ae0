package postgreslock

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// conns is a pool of connections, of pgx or of database/sql.
type conns interface {
	// take takes a connection. free returns it to the pool, which closes it if it is
	// broken, or still in a transaction.
	take(ctx context.Context) (c *pgx.Conn, free func(), err error)

	// beforeConnect prepares the configuration of a connection outside of the pool,
	// because the pool's owner may have replaced the password.
	beforeConnect(ctx context.Context, c *pgx.ConnConfig) error

	// usage returns the number of connections in use, and the limit, or 0 without one.
	usage() (inUse, limit int)
}

type pool struct{ *pgxpool.Pool }

func (p pool) take(ctx context.Context) (*pgx.Conn, func(), error) {
	c, err := p.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	return c.Conn(), c.Release, nil
}

// beforeConnect runs the pool's BeforeConnect.
func (p pool) beforeConnect(ctx context.Context, c *pgx.ConnConfig) error {
	if prepare := p.Config().BeforeConnect; prepare != nil {
		return prepare(ctx, c)
	}
	return nil
}

func (p pool) usage() (inUse, limit int) {
	s := p.Stat()
	return int(s.AcquiredConns()), int(s.MaxConns())
}

type database struct{ *sql.DB }

// beforeConnect copies the configuration of a connection of the pool. It cannot call the
// caller's OptionBeforeConnect, because the pool does not expose that.
func (d database) beforeConnect(ctx context.Context, c *pgx.ConnConfig) error {
	return withConn(ctx, d, func(own *pgx.Conn) error {
		*c = *own.Config()
		return nil
	})
}

func (d database) usage() (inUse, limit int) {
	s := d.Stats()
	return s.InUse, s.MaxOpenConnections
}

var errNotPgx = errors.New("its connections are not from github.com/jackc/pgx/v5/stdlib")

func (d database) take(ctx context.Context) (*pgx.Conn, func(), error) {
	conn, err := d.Conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	var c *pgx.Conn
	err = conn.Raw(func(raw any) error {
		if std, ok := raw.(*stdlib.Conn); ok {
			c = std.Conn()
			return nil
		}
		return errNotPgx
	})
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return c, func() {
		if c.IsClosed() || c.PgConn().TxStatus() != 'I' {
			_ = conn.Raw(func(any) error { return sqldriver.ErrBadConn })
		}
		_ = conn.Close()
	}, nil
}

// exhaustedError means that all connections of a pool were in use.
type exhaustedError struct{ err error }

func (e exhaustedError) Error() string {
	return e.err.Error() + ": all connections of the pool are in use"
}
func (e exhaustedError) Unwrap() error { return e.err }

// isExhausted reports whether all connections are in use.
func isExhausted(from conns) bool {
	inUse, limit := from.usage()
	return limit > 0 && inUse >= limit
}

func withConn(ctx context.Context, from conns, f func(c *pgx.Conn) error) error {
	c, free, err := from.take(ctx)
	if err != nil {
		if ctx.Err() != nil && isExhausted(from) {
			err = exhaustedError{err}
		}
		return err
	}
	defer free()
	return f(c)
}
