package mysqllock

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/sqlswap"
)

// server is a database, and the results of the driver's checks of it.
type server struct {
	db                    *sql.DB
	ownPoolSize           int    // the size of a pool that Open has made; 0 for the caller's pool
	packetOfURL           int    // maxAllowedPacket of the URL; 0 for the caller's pool
	namesTable, lostTable string // the quoted names of the tables
	Options                      // with their defaults; Location begins with the backend

	prepared atomic.Pointer[sql.Stmt] // the statement of store.update, on the driver's own connections

	recreated atomic.Pointer[string] // a dropped table that the driver created again
	maria     atomic.Bool            // the server is MariaDB, not MySQL
	maxPacket atomic.Int64           // the size of the largest statement, in bytes
	ready     atomic.Bool            // checkServer found the server fit
	checking  chan struct{}          // has a value while a goroutine checks the server, which may take long
	closed    atomic.Bool
}

// do runs f, which sends a statement that commits by itself. Before the first statement
// it checks the server. It repeats f after an error for which isRetryable returns true.
func (s *server) do(ctx context.Context, f func(ctx context.Context) error) error {
	return s.repeatWhile(ctx, isRetryable, f)
}

// repeatWhile is like do, and repeats f after errors for which retry returns true.
func (s *server) repeatWhile(ctx context.Context, retry func(error) bool, f func(ctx context.Context) error) error {
	if s.closed.Load() {
		return driver.ErrClosed
	}
	var cause error // the last error after which the loop repeated f
	err := s.checkServer(ctx)
	for n := 0; err == nil; n++ {
		if err = f(ctx); err == nil || n >= maxRepeats {
			break
		}
		if errNumber(err) == noSuchTable && !s.MustExist { // an operator dropped a table
			s.ready.Store(false)
			if err = s.checkServer(ctx); err != nil {
				break
			}
			continue
		}
		if !retry(err) {
			break
		}
		cause = err
		err = backoff.Wait(ctx, backoff.Jitter(backoff.Doubled(2*time.Millisecond, n, 100*time.Millisecond)))
	}
	if err != nil && !isServerUsable(ctx, err) {
		s.ready.Store(false) // the next connection may reach another server
		if s.ownPoolSize > 0 && isReadOnly(err) {
			s.db.SetMaxIdleConns(0) // the address may lead to another server now
			s.db.SetMaxIdleConns(s.ownPoolSize)
		}
	}
	return s.driverError(ctx, err, cause)
}

// maxRepeats is the number of times that the driver repeats a statement after a retryable
// error.
const maxRepeats = 8

// checkServer checks the server once, and creates the tables if they are missing.
func (s *server) checkServer(ctx context.Context) error {
	if s.ready.Load() {
		return nil
	}
	select {
	case s.checking <- struct{}{}:
		defer func() { <-s.checking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.ready.Load() {
		return nil
	}
	v, err := s.variables(ctx)
	if err != nil {
		return err
	}
	if err := v.check(); err != nil {
		return err
	}
	_, _, maria := v.version()
	s.maria.Store(maria)
	s.maxPacket.Store(v.maxPacket(s.packetOfURL))
	for range 2 {
		_, err = s.exec(ctx, "SELECT 1 FROM "+s.namesTable+", "+s.lostTable+" LIMIT 0")
		if errNumber(err) != noSuchTable || s.MustExist {
			break
		}
		dropped := s.droppedTable(ctx)
		if err = s.createTables(ctx); err != nil {
			break
		}
		s.recreated.CompareAndSwap(nil, dropped)
	}
	var defects []*engine.ConfigError
	if err == nil {
		defects, err = s.checkTables(ctx)
	}
	if err == nil && len(defects) > 0 {
		err = defects[0]
	}
	if err != nil {
		return err
	}
	// Prepare the most frequent statement, if the pool is the driver's own. A caller's
	// pool may go through a proxy that would then need a connection for each client, or
	// have connections that last for one statement. The pool prepares the statement again
	// on each connection.
	if s.ownPoolSize > 0 && s.prepared.Load() == nil {
		if stmt, err := s.db.PrepareContext(ctx, s.updateStatement()); err == nil {
			s.prepared.Store(stmt)
		}
	}
	s.ready.Store(true)
	return nil
}

// droppedTable returns the table that an operator has dropped while the other one
// remains, or nil. If only the table lost is missing, createTables may be under way,
// because it creates the table of names first. If there are names, the table lost was
// dropped, because locking a name requires both tables.
func (s *server) droppedTable(ctx context.Context) *string {
	hasNames := false
	_, namesErr := s.exec(ctx, "SELECT 1 FROM "+s.namesTable+" LIMIT 0")
	_, lostErr := s.exec(ctx, "SELECT 1 FROM "+s.lostTable+" LIMIT 0")
	switch {
	case errNumber(namesErr) == noSuchTable && lostErr == nil:
		return &s.namesTable
	case errNumber(lostErr) == noSuchTable && namesErr == nil:
		_ = s.queryRow(ctx, "SELECT EXISTS (SELECT 1 FROM "+s.namesTable+")", &hasNames)
	}
	if hasNames {
		return &s.lostTable
	}
	return nil
}

// createTables creates the tables. Many clients may do so at the same time: the server
// runs their statements one after the other, and the later ones find the tables.
func (s *server) createTables(ctx context.Context) error {
	script := strings.TrimSuffix(strings.ReplaceAll(schema, "{prefix}", s.Prefix), ";\n")
	for statement := range strings.SplitSeq(script, ";\n") {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// variables are the variables of the server and the session that the driver checks.
type variables map[string]string

func (s *server) variables(ctx context.Context) (variables, error) {
	v := variables{}
	var name, value string
	err := s.query(ctx, "SHOW SESSION VARIABLES WHERE Variable_name IN ('version', 'autocommit', 'read_only', 'innodb_read_only', "+
		"'tx_isolation', 'transaction_isolation', 'log_bin', 'sql_log_bin', 'binlog_format', 'sync_binlog', 'wsrep_on', "+
		"'innodb_flush_log_at_trx_commit', 'sql_safe_updates', 'max_allowed_packet')",
		[]any{&name, &value}, func() { v[strings.ToLower(name)] = value })
	if err != nil {
		return nil, err
	}
	// sysdateFrozen: SYSDATE does not advance during a statement, so it would not show
	// the time after a wait. nowIsSet: NOW follows the session's variable timestamp.
	var sysdateFrozen, nowIsSet bool
	err = s.query(ctx, "SELECT SLEEP(0.001) + (SYSDATE(6) = NOW(6)), ABS(TIMESTAMPDIFF(SECOND, NOW(), SYSDATE())) > 600, @@sql_select_limit",
		[]any{&sysdateFrozen, &nowIsSet, &value}, // no row if sql_select_limit, which also applies to SHOW, is 0
		func() { v["sql_select_limit"] = value })
	if sysdateFrozen {
		v["sysdate_is_now"] = "ON"
	}
	if nowIsSet {
		v["timestamp"] = "ON"
	}
	return v, err
}

// noLimit is the value of sql_select_limit for no limit.
const noLimit = "18446744073709551615"

func (v variables) isolation() string {
	return strings.ToUpper(strings.ReplaceAll(v["tx_isolation"]+v["transaction_isolation"], " ", "-"))
}

func (v variables) isOn(name string) bool { return v[name] == "ON" || v[name] == "1" }

// check returns an error for settings under which locks are not safe.
func (v variables) check() *engine.ConfigError {
	major, minor, maria := v.version()
	switch {
	case v["sql_select_limit"] != noLimit:
		return &engine.ConfigError{Problem: "sql_select_limit is " + v["sql_select_limit"], Hint: "the server would leave out rows: leave sql_select_limit out of the DSN, or init_connect"}
	case maria && (major < 10 || major == 10 && minor < 6) || !maria && major < 8:
		return &engine.ConfigError{Problem: "its version is " + v["version"], Hint: "MySQL 8 or later, or MariaDB 10.6 or later, is needed"}
	case strings.Contains(v["version"], "TiDB"):
		return &engine.ConfigError{Problem: "it is TiDB, version " + v["version"], Hint: "TiDB has another clock and other row locks: use MySQL or MariaDB"}
	case v.isOn("read_only") || v.isOn("innodb_read_only"):
		return &engine.ConfigError{Problem: "the server is read-only", Hint: "it is a replica, or was set to read-only: give the address of the primary", Temporary: true}
	case !v.isOn("autocommit"):
		return &engine.ConfigError{Problem: "autocommit is off", Hint: "the server must store each step before it answers: leave autocommit=0 out of the DSN, or init_connect"}
	case strings.Contains(v.isolation(), "READ-UNCOMMITTED"):
		return &engine.ConfigError{Problem: "the isolation level is READ UNCOMMITTED", Hint: "a client could read a grant that is then rolled back: set READ COMMITTED"}
	case v.isOn("sql_safe_updates"):
		return &engine.ConfigError{Problem: "sql_safe_updates is on", Hint: "the server refuses to renew several leases at once: leave sql_safe_updates out of the DSN, or init_connect"}
	case v.isOn("timestamp"):
		return &engine.ConfigError{Problem: "the session's clock is set", Hint: "a client with its own clock would end leases of other clients: leave timestamp out of the DSN, or init_connect"}
	case v.isOn("sysdate_is_now"):
		return &engine.ConfigError{Problem: "the server runs with sysdate-is-now", Hint: "it hides the time at which a statement that waited takes effect: start the server without it"}
	}
	return nil
}

// maxPacket returns the size of the largest statement, in bytes, that the server and
// go-sql-driver allow. ofURL is maxAllowedPacket of the URL.
func (v variables) maxPacket(ofURL int) int64 {
	limit := int64(cmp.Or(max(ofURL, 0), 64<<20)) // the default of go-sql-driver
	if n, err := strconv.ParseInt(v["max_allowed_packet"], 10, 64); err == nil {
		return min(n, limit)
	}
	return limit
}

// maxNameBytes is the largest number of bytes that a name takes in a list of names.
const maxNameBytes = 2*driver.MaxName + 8

// namesPerStatement returns the number of names that fit into one statement, if each
// takes up to perName bytes: at least one. A kilobyte is for the rest of the statement.
func (s *server) namesPerStatement(perName int64) int {
	return int(max(1, (s.maxPacket.Load()-1<<10)/perName))
}

func (v variables) version() (major, minor int, maria bool) {
	_, _ = fmt.Sscanf(v["version"], "%d.%d", &major, &minor)
	return major, minor, strings.Contains(strings.ToLower(v["version"]), "mariadb")
}

// query runs a query, scans each row into the variables of into, and then calls each.
func (s *server) query(ctx context.Context, statement string, into []any, each func()) error {
	return sqlswap.ForEachRow(ctx, s.db, statement, nil, into, func() error {
		each()
		return nil
	})
}

func (s *server) queryRow(ctx context.Context, statement string, into ...any) error {
	return s.db.QueryRowContext(ctx, statement).Scan(into...)
}

// An execution sends a statement, and returns the number of changed rows.
type execution func(ctx context.Context) (rows int64, err error)

// executionOf returns the execution of a statement that contains its values.
func (s *server) executionOf(statement string) execution {
	return func(ctx context.Context) (int64, error) { return s.exec(ctx, statement) }
}

func (s *server) exec(ctx context.Context, statement string) (rows int64, err error) {
	return rowsAffected(s.db.ExecContext(ctx, statement))
}

func rowsAffected(r sql.Result, err error) (rows int64, _ error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// withShortLockWait bounds a statement's wait for locks to a second, on a caller's pool
// of MariaDB. MySQL has no such setting for a single statement. The driver's own
// connections never wait longer.
func (s *server) withShortLockWait(statement string) string {
	if s.maria.Load() && s.ownPoolSize == 0 {
		return "SET STATEMENT innodb_lock_wait_timeout = 1 FOR " + statement
	}
	return statement
}
