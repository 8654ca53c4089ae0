package sqlitelock

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"modernc.org/sqlite"

	"github.com/pawl-go/pawl/driver"
)

// conn is one connection to the file, for one goroutine at a time. It uses the SQLite
// driver directly, because a transaction costs a third more through database/sql.
type conn struct {
	c     sqliteConn
	stmts map[string]*stmt       // prepared for the lifetime of the connection, by their SQL
	args  []sqldriver.NamedValue // arguments of the statement that runs

	buffer []byte // for the stored form of an entry or a waiter, before it is written
}

type stmt struct {
	preparedStmt
	row []sqldriver.Value // the buffer into which forEachRow reads rows
}

// sqliteConn has the methods of a connection of modernc.org/sqlite that conn uses, and
// preparedStmt has those that a stmt uses.
type (
	sqliteConn interface {
		sqldriver.Conn
		sqldriver.ExecerContext
	}
	preparedStmt interface {
		sqldriver.Stmt
		sqldriver.StmtExecContext
		sqldriver.StmtQueryContext
	}
)

// connect opens an existing file. busy_timeout stays 0: this package waits for other
// processes itself, because SQLite's busy handler ignores ctx.
func connect(path string) (*conn, error) {
	// The path is escaped, so that SQLite finds no parameters in it. With mode=rw SQLite
	// never creates the file: if another process deletes it at this moment, connect
	// fails, and does not create an empty file of mode 0644.
	path = filepath.ToSlash(path)
	if path[0] != '/' {
		path = "/" + path // C:/locks.db
	}
	c, err := (&sqlite.Driver{}).Open("file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=rw")
	if err != nil {
		return nil, err
	}
	return &conn{c: c.(sqliteConn), stmts: map[string]*stmt{}}, nil //nolint:forcetypeassert // see sqliteConn
}

// script runs statements that are too rare to prepare.
func (c *conn) script(sql string) error {
	_, err := c.c.ExecContext(context.Background(), sql, nil)
	return err
}

// prepared returns the prepared statement of some SQL.
func (c *conn) prepared(sql string) (*stmt, error) {
	if s := c.stmts[sql]; s != nil {
		return s, nil
	}
	s, err := c.c.Prepare(sql)
	if err != nil {
		return nil, fmt.Errorf("preparing %q: %w", sql, err)
	}
	c.stmts[sql] = &stmt{preparedStmt: s.(preparedStmt)} //nolint:forcetypeassert // see preparedStmt
	return c.stmts[sql], nil
}

// exec runs a statement.
func (c *conn) exec(sql string, args ...sqldriver.Value) error {
	_, err := c.change(sql, args...)
	return err
}

// change runs a statement, and returns how many rows it changed. It passes no ctx to
// SQLite: a statement takes microseconds, a ctx costs a goroutine each time, and an
// interrupted transaction would have to be rolled back.
func (c *conn) change(sql string, args ...sqldriver.Value) (int, error) {
	s, err := c.prepared(sql)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}

// forEachRow runs a query, and calls f for every row. f must not keep the row.
func (c *conn) forEachRow(sql string, f func(row []sqldriver.Value), args ...sqldriver.Value) error {
	s, err := c.prepared(sql)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), c.bind(args))
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

// value runs a query, and returns its single value.
func (c *conn) value(sql string) (v any, err error) {
	err = c.forEachRow(sql, func(row []sqldriver.Value) { v = row[0] })
	return v, err
}

func (c *conn) bind(args []sqldriver.Value) []sqldriver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, sqldriver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// integer returns the number in a column, or 0 if an operator has changed its type.
func integer(column sqldriver.Value) int64 {
	n, _ := column.(int64)
	return n
}

// logFrames returns the number of pages in the log, according to SQLite's index in shared
// memory. It runs a checkpoint that does nothing, which returns that number.
func (c *conn) logFrames() (n int64, err error) {
	err = c.forEachRow("PRAGMA wal_checkpoint(NOOP)", func(row []sqldriver.Value) { n = integer(row[1]) })
	return n, err
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.c.Close())...)
}

// writeMutexes has the mutexes of the open files. The drivers of one file in one process
// share a mutex, so that they queue in order. Different processes have to retry.
var (
	writeMutexes      = map[string]*writeMutex{}
	writeMutexesGuard sync.Mutex
)

type writeMutex struct {
	mutex chan struct{}
	users int
}

// useWriteMutex returns the mutex of a file, and a function that ends its use.
func useWriteMutex(path string) (mutex chan struct{}, drop func()) {
	writeMutexesGuard.Lock()
	defer writeMutexesGuard.Unlock()
	w := writeMutexes[path]
	if w == nil {
		w = &writeMutex{mutex: make(chan struct{}, 1)}
		writeMutexes[path] = w
	}
	w.users++
	return w.mutex, func() {
		writeMutexesGuard.Lock()
		defer writeMutexesGuard.Unlock()
		if w.users--; w.users == 0 {
			delete(writeMutexes, path)
		}
	}
}

// A sharedConn shares one connection to the file: enter gives the connection to one
// goroutine at a time, until it calls leave.
type sharedConn struct {
	// mutex has a value while a goroutine has the connection. The wait for it can be
	// cancelled, see queue. It is fair, because a channel serves its senders in order.
	mutex  chan struct{}
	closed <-chan struct{} // closed by Close of the driver
	conn   *conn           // only the goroutine that has the mutex uses it
}

// spinTries is the number of times that a caller retries, while other goroutines run,
// before it queues. A step takes some microseconds, less than the sleep and the wake-up
// of a goroutine. With 64 concurrent callers, spinning doubles the throughput. Such a
// caller cannot overtake the queue, because the mutex passes directly to the first caller
// in it.
const spinTries = 100

// enter waits for the mutex, and returns the connection. It gives up when ctx ends, or
// after timeout if ctx has no deadline.
func (s *sharedConn) enter(ctx context.Context, timeout time.Duration) (*conn, error) {
	entered := s.tryEnter()
	for n := 0; !entered && n < spinTries; n++ {
		runtime.Gosched()
		entered = s.tryEnter()
	}
	if !entered {
		if err := s.queue(ctx, timeout); err != nil {
			return nil, err
		}
	}
	select {
	case <-s.closed: // Close waits for the mutex, or has held it
		s.leave()
		return nil, driver.ErrClosed
	default:
		return s.conn, nil
	}
}

// tryEnter enters if the mutex is free and no caller queues for it.
func (s *sharedConn) tryEnter() bool {
	select {
	case s.mutex <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *sharedConn) leave() { <-s.mutex }

var errQueueTimeout = errors.New("timed out behind other calls of this process")

func (s *sharedConn) queue(ctx context.Context, timeout time.Duration) error {
	var expired <-chan time.Time
	if _, hasDeadline := ctx.Deadline(); !hasDeadline {
		expired = time.After(timeout)
	}
	select {
	case s.mutex <- struct{}{}:
		return nil
	case <-s.closed:
		return driver.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case <-expired:
		return errQueueTimeout
	}
}

// drain waits until the last goroutine has called leave. The driver is closed, so no
// other goroutine enters.
func (s *sharedConn) drain() {
	s.mutex <- struct{}{}
	<-s.mutex
}

// close closes the connection, if there is one. It must be called before the first enter,
// or after drain.
func (s *sharedConn) close() error {
	c := s.conn
	if s.conn = nil; c == nil {
		return nil
	}
	return c.close()
}
