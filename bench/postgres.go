package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3/lock"

	"github.com/pawl-go/pawl"
	_ "github.com/pawl-go/pawl/postgreslock"
)

// startPostgres starts a PostgreSQL with the settings of initdb, among them fsync, and
// with pg_stat_statements.
func startPostgres() (server, error) {
	bin := os.Getenv("PGBIN")
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin"); bin == "" && len(found) > 0 {
		bin = found[len(found)-1]
	}
	dir, err := installDatabase("initdb of Debian's postgresql", func(data string) *exec.Cmd {
		return exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "bench", "-A", "trust", "--no-instructions")
	})
	if err != nil {
		return nil, err
	}
	addr, port, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p := &serverProcess{addr: addr, dir: dir}
	p.cmd = exec.Command(filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data"), "-p", port, "-k", dir, "-c", "listen_addresses=127.0.0.1",
		"-c", "max_connections=1200", "-c", "shared_preload_libraries=pg_stat_statements")
	if err := dropPrivileges(p.cmd, dir); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	db, err := sql.Open("pgx", postgresURL(addr))
	if err != nil {
		return nil, err
	}
	p.close = func() { _ = db.Close() }
	p.count = func() (n int64) {
		_ = db.QueryRow("SELECT sum(calls) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat%'").Scan(&n)
		return n
	}
	if err := waitReady(db.Ping); err != nil {
		p.stop()
		return nil, err
	}
	_, err = db.Exec(`CREATE EXTENSION pg_stat_statements;
		CREATE TABLE lease (name text PRIMARY KEY, token text, ends timestamptz NOT NULL)`)
	return &sqlServer{p, db}, err
}

// A sqlServer is a server with an administrator's connection.
type sqlServer struct {
	*serverProcess
	db *sql.DB
}

// deleteRow returns a remover that runs a statement with the name as its argument.
func deleteRow(statement string, argument func(name string) any) remover {
	return func(s server, _, _ client, name string) error {
		var done sql.Result
		err := errors.New("not tried")
		for i := 0; err != nil && i < 10; i++ { // a waiter may block the statement, even by a deadlock
			done, err = s.(*sqlServer).db.Exec(statement, argument(name))
		}
		if err != nil {
			return err
		}
		if n, _ := done.RowsAffected(); n != 1 {
			return fmt.Errorf("%d rows of %q", n, name)
		}
		return nil
	}
}

func nameArgument(name string) any    { return name }
func gooseIDArgument(name string) any { return gooseLockID(name) }

// terminateSessions returns a remover that ends the sessions of a FROM clause.
func terminateSessions(from string) remover {
	return func(s server, _, _ client, _ string) error {
		_, err := s.(*sqlServer).db.Exec("SELECT pg_terminate_backend(pid) FROM " + from)
		return err
	}
}

const (
	allSessions = "pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
	lockHolders = "pg_locks WHERE locktype = 'advisory' AND granted"
)

func postgresURL(addr string) string {
	return "postgres://bench@" + addr + "/postgres?sslmode=disable"
}

func postgresContenders() []contender {
	return []contender{
		{
			name: "polled row", open: openRow("pgx", postgresURL, postgresRow),
			deleteLock: deleteRow("DELETE FROM lease WHERE name = $1", nameArgument),
		},
		{
			name: "pawl", open: openURL(postgresURL), renews: true, notifies: true,
			deleteLock: deleteRow("DELETE FROM pawl.locks WHERE name = $1", nameArgument), endSession: terminateSessions(allSessions),
		},
		{
			name:       "pg_advisory_lock",
			open:       openSession("pgx", postgresURL, "SELECT pg_advisory_lock(hashtext($1))", "SELECT pg_advisory_unlock(hashtext($1))"),
			endSession: terminateSessions(lockHolders),
		},
		{name: "goose, session", open: openGooseSession("pgx", postgresURL), endSession: terminateSessions(lockHolders)},
		{
			name: "goose, table", open: openGooseTable("pgx", postgresURL, lock.NewPostgresTableLocker), renews: true,
			deleteLock: deleteRow("DELETE FROM goose_lock WHERE lock_id = $1", gooseIDArgument),
		},
	}
}

// openURL opens Pawl with its default settings, except the TTL.
func openURL(url func(addr string) string) func(string, time.Duration) (client, error) {
	return func(addr string, ttl time.Duration) (client, error) {
		c, err := pawl.Open(context.Background(), url(addr), &pawl.Options{TTL: ttl})
		return pawlLocker{client: c}, err
	}
}

// rowSQL has the statements of a lease that is a row.
type rowSQL struct{ lockSQL, unlockSQL string }

var postgresRow = rowSQL{
	lockSQL: `INSERT INTO lease (name, token, ends) VALUES ($1, $2, clock_timestamp() + $3 * interval '1 microsecond')
		ON CONFLICT (name) DO UPDATE SET token = excluded.token, ends = excluded.ends
		WHERE lease.token IS NULL OR lease.ends < clock_timestamp()`,
	unlockSQL: `UPDATE lease SET token = NULL WHERE name = $1 AND token = $2`,
}

// rowLocker is the floor on a database: two statements, without fence, queue and renewal.
// A client without the lock retries after a pause that grows from 1 ms to 10 ms.
type rowLocker struct {
	db                 *sql.DB
	lockSQL, unlockSQL *sql.Stmt
	ttl                time.Duration
}

func openRow(driver string, url func(string) string, stmts rowSQL) func(string, time.Duration) (client, error) {
	return func(addr string, ttl time.Duration) (client, error) {
		db, err := openDB(driver, url(addr))
		if err != nil {
			return nil, err
		}
		r := &rowLocker{db: db, ttl: ttl}
		if r.lockSQL, err = db.Prepare(stmts.lockSQL); err == nil {
			r.unlockSQL, err = db.Prepare(stmts.unlockSQL)
		}
		return r, err
	}
}

// openDB opens a pool of the same size as Pawl's.
func openDB(driver, url string) (*sql.DB, error) {
	db, err := sql.Open(driver, url)
	if err == nil {
		db.SetMaxOpenConns(16)
		db.SetMaxIdleConns(16)
	}
	return db, err
}

func (r *rowLocker) lock(ctx context.Context, name string) (func() error, func() <-chan struct{}, error) {
	token := rand.Text()
	for pause := time.Millisecond; ; pause = min(2*pause, 10*time.Millisecond) {
		done, err := r.lockSQL.ExecContext(ctx, name, token, r.ttl.Microseconds())
		if err != nil {
			return nil, nil, err
		}
		if n, _ := done.RowsAffected(); n > 0 {
			return func() error { _, err := r.unlockSQL.Exec(name, token); return err }, nil, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (r *rowLocker) close() { _ = r.db.Close() }

// sessionLocker is a lock of the database itself. It belongs to a connection, so each
// holder and each waiter occupies one.
type sessionLocker struct {
	db                 *sql.DB
	lockSQL, unlockSQL string
}

func openSession(driver string, url func(string) string, lockSQL, unlockSQL string) func(string, time.Duration) (client, error) {
	return func(addr string, _ time.Duration) (client, error) {
		db, err := sql.Open(driver, url(addr))
		if err == nil {
			db.SetMaxIdleConns(64)
		}
		return &sessionLocker{db, lockSQL, unlockSQL}, err
	}
}

func (s *sessionLocker) lock(ctx context.Context, name string) (func() error, func() <-chan struct{}, error) {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	if _, err := c.ExecContext(ctx, s.lockSQL, name); err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return func() error {
		_, err := c.ExecContext(context.Background(), s.unlockSQL, name)
		_ = c.Close()
		return err
	}, nil, nil
}

func (s *sessionLocker) close() { _ = s.db.Close() }
