package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
)

// oneStatement checks that a check sends one statement in the caller's transaction.
func oneStatement(t *testing.T, db *sql.DB, dsn string, check check) {
	t.Helper()
	c := &counting{driver: db.Driver(), dsn: dsn}
	counted := sql.OpenDB(c)
	defer counted.Close()
	for _, f := range []uint64{5, 1 << 40, 1 << 40, 1} { // the last fence is stale
		tx := must(counted.BeginTx(t.Context(), nil))(t)
		before := c.statements.Load()
		if err := check(t.Context(), tx, "counted", f); errors.Is(err, pawl.ErrStale) != (f == 1) {
			t.Errorf("fence %d: %v", f, err)
		}
		if n := c.statements.Load() - before; n != 1 {
			t.Errorf("fence %d takes %d statements, want 1", f, n)
		}
		if f == 1 {
			_ = tx.Rollback()
			continue
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	}
}

// A counting driver is a real driver that counts the statements it sends.
type counting struct {
	driver     driver.Driver
	dsn        string
	statements atomic.Int64
}

func (c *counting) Driver() driver.Driver { return c.driver }

func (c *counting) Connect(context.Context) (driver.Conn, error) {
	inner, err := c.driver.Open(c.dsn)
	return &countingConn{inner, c}, err
}

type countingConn struct {
	driver.Conn
	all *counting
}

func (c *countingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
}

// PrepareContext counts the one execution of the statement, which the connection does not
// see.
func (c *countingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.all.statements.Add(1)
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (c *countingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	done, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	c.count(err)
	return done, err
}

func (c *countingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	c.count(err)
	return rows, err
}

// count ignores statements that the driver skipped: database/sql prepares them instead.
func (c *countingConn) count(err error) {
	if !errors.Is(err, driver.ErrSkip) {
		c.all.statements.Add(1)
	}
}

func (c *countingConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}
