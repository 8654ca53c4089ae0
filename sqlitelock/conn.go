package sqlitelock

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"

	"modernc.org/sqlite"
)

// conn is one connection to the file, for one goroutine at a time. It talks to the driver
// below database/sql: the pool would cost a third more per transaction, and there is
// nothing to pool.
type conn struct {
	c interface {
		sqldriver.Conn
		sqldriver.ExecerContext
	}
	stmts []*stmt
	args  []sqldriver.NamedValue // of the statement that runs
	look  *stmt                  // at the log
}

// connect opens the file, which exists. busy_timeout stays 0: SQLite's own handler sleeps
// without regard for any ctx, so waiting for other processes is ours to do.
func connect(path string) (*conn, error) {
	// As a URI with everything escaped, no character of the name is taken for a
	// parameter. With mode=rw nothing is created: if the file is deleted right now, this
	// is an error, and makes no empty file of mode 0644.
	path = filepath.ToSlash(path)
	if path[0] != '/' {
		path = "/" + path // C:/locks.db
	}
	return connectTo("file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=rw")
}

func connectTo(dsn string) (*conn, error) {
	c, err := (&sqlite.Driver{}).Open(dsn)
	if err != nil {
		return nil, err
	}
	out := &conn{}
	var ok bool
	if out.c, ok = c.(interface {
		sqldriver.Conn
		sqldriver.ExecerContext
	}); !ok {
		return nil, errors.Join(errors.New("modernc.org/sqlite: a connection without ExecContext"), c.Close())
	}
	return out, nil
}

// script runs statements that are not worth preparing.
func (c *conn) script(sql string) error {
	_, err := c.c.ExecContext(context.Background(), sql, nil)
	return err
}

// prepare makes a statement that lives as long as the connection.
func (c *conn) prepare(sql string) (*stmt, error) {
	s, err := c.c.Prepare(sql)
	if err != nil {
		return nil, fmt.Errorf("preparing %q: %w", sql, err)
	}
	p, ok := s.(preparedStmt)
	if !ok {
		return nil, errors.Join(errors.New("modernc.org/sqlite: a statement without a context"), s.Close())
	}
	out := &stmt{c: c, s: p}
	c.stmts = append(c.stmts, out)
	return out, nil
}

// prepareAll makes the statements that a connection uses all its life.
func (c *conn) prepareAll(statements map[**stmt]string) (err error) {
	for s, sql := range statements {
		if *s, err = c.prepare(sql); err != nil {
			return err
		}
	}
	return nil
}

// finish ends a statement before its connection does.
func (c *conn) finish(s *stmt) error {
	c.stmts = slices.DeleteFunc(c.stmts, func(x *stmt) bool { return x == s })
	return s.s.Close()
}

// value runs a statement once that answers with a single value.
func (c *conn) value(sql string) (v any, err error) {
	s, err := c.prepare(sql)
	if err != nil {
		return nil, err
	}
	err = s.each(func(row []sqldriver.Value) { v = row[0] })
	return v, errors.Join(err, c.finish(s))
}

// texts runs a query once that answers with one column of text.
func (c *conn) texts(sql string, f func(string)) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	err = s.each(func(row []sqldriver.Value) {
		text, _ := row[0].(string)
		f(text)
	})
	return errors.Join(err, c.finish(s))
}

// logFrames is how many pages stand in the log, as the index in shared memory has it. The
// checkpoint that tells is one that does nothing.
func (c *conn) logFrames() (n int64, err error) {
	if c.look == nil {
		if c.look, err = c.prepare("PRAGMA wal_checkpoint(NOOP)"); err != nil {
			return 0, err
		}
	}
	err = c.look.each(func(row []sqldriver.Value) { n, _ = row[1].(int64) })
	return n, err
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.s.Close())
	}
	return errors.Join(append(errs, c.c.Close())...)
}

// stmt is a prepared statement.
type stmt struct {
	c   *conn
	s   preparedStmt
	row []sqldriver.Value
}

type preparedStmt interface {
	sqldriver.Stmt
	sqldriver.StmtExecContext
	sqldriver.StmtQueryContext
}

// exec runs s. No ctx goes down to SQLite: a statement takes microseconds, watching a ctx
// costs a goroutine each time, and an interrupted transaction would have to be undone.
func (s *stmt) exec(args ...sqldriver.Value) error {
	_, err := s.s.ExecContext(context.Background(), s.c.bind(args))
	return err
}

// change runs s and says how many rows it changed.
func (s *stmt) change(args ...sqldriver.Value) (int, error) {
	r, err := s.s.ExecContext(context.Background(), s.c.bind(args))
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}

// each runs s and calls f for every row, which is f's only until it returns.
func (s *stmt) each(f func(row []sqldriver.Value), args ...sqldriver.Value) error {
	rows, err := s.s.QueryContext(context.Background(), s.c.bind(args))
	if err != nil {
		return err
	}
	if s.row == nil {
		s.row = make([]sqldriver.Value, len(rows.Columns()))
	}
	for {
		switch err := rows.Next(s.row); {
		case errors.Is(err, io.EOF):
			return rows.Close()
		case err != nil:
			return errors.Join(err, rows.Close())
		}
		f(s.row)
	}
}

func (c *conn) bind(args []sqldriver.Value) []sqldriver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, sqldriver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}
