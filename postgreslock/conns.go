package postgreslock

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// conns are where connections come from: one of the two kinds of pools.
type conns interface {
	// take takes a connection. free gives it back, and ends it if it is broken, or still
	// in a transaction.
	take(ctx context.Context) (c *pgx.Conn, free func(), err error)

	// most is how many connections there may be.
	most() int
}

type pool struct{ *pgxpool.Pool }

func (p pool) take(ctx context.Context) (*pgx.Conn, func(), error) {
	c, err := p.Acquire(ctx)
	if err != nil {
		if s := p.Stat(); ctx.Err() != nil && s.AcquiredConns() >= s.MaxConns() {
			err = exhaustedError{err}
		}
		return nil, nil, err
	}
	return c.Conn(), c.Release, nil
}

func (p pool) most() int { return int(p.Config().MaxConns) }

type database struct{ *sql.DB }

func (d database) most() int {
	if most := d.Stats().MaxOpenConnections; most > 0 {
		return most
	}
	return connections
}

var errNotPgx = errors.New("its connections are not those of github.com/jackc/pgx/v5/stdlib")

func (d database) take(ctx context.Context) (*pgx.Conn, func(), error) {
	conn, err := d.Conn(ctx)
	if err != nil {
		if s := d.Stats(); ctx.Err() != nil && s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections {
			err = exhaustedError{err}
		}
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

// exhaustedError says that a pool had no connection to give.
type exhaustedError struct{ err error }

func (e exhaustedError) Error() string {
	return e.err.Error() + ": all connections of the pool are in use"
}
func (e exhaustedError) Unwrap() error { return e.err }

// with runs f with a connection.
func with(ctx context.Context, from conns, f func(c *pgx.Conn) error) error {
	c, free, err := from.take(ctx)
	if err != nil {
		return err
	}
	defer free()
	return f(c)
}

// undo ends a transaction that is still open, for at most a second; a connection on which
// that fails is ended, and so the server undoes it.
func undo(c *pgx.Conn) {
	if c.IsClosed() || c.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = c.Exec(ctx, "ROLLBACK")
}
