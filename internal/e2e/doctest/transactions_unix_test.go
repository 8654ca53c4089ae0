//go:build unix

package doctest

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/mysqllock"
	"github.com/pawl-go/pawl/postgreslock"
	"github.com/pawl-go/pawl/sqlitelock"
)

const ledger = "CREATE TABLE accounts (id int PRIMARY KEY, balance int); INSERT INTO accounts VALUES (3, 100), (7, 100)"

// wantBalance checks the balance of account 7.
func wantBalance(t *testing.T, db *sql.DB, want int) {
	t.Helper()
	var got int
	if err := db.QueryRowContext(t.Context(), "SELECT balance FROM accounts WHERE id = 7").Scan(&got); err != nil || got != want {
		t.Errorf("account 7 has %d, %v; want %d", got, err, want)
	}
}

func openLocks(t *testing.T, url string) *pawl.Client {
	t.Helper()
	locks, err := pawl.Open(t.Context(), url, servertest.Patient)
	noError(t, err)
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

func openPool(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	noError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func openDatabase(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	noError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func nothing() error { return nil }

// wantRefused requires the error of a check, or of a loss that the holder saw first.
func wantRefused(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, pawl.ErrStale) && !errors.Is(err, pawl.ErrLost) {
		t.Errorf("%v; want ErrStale or ErrLost", err)
	}
}

// wantPaidOnce checks that a check accepts a holder, and refuses one whose lease was
// broken between its work and the check.
func wantPaidOnce(t *testing.T, url string, db *sql.DB, begin func(context.Context, *sql.TxOptions) (*sql.Tx, error), check checkSQL) {
	t.Helper()
	locks, other := openLocks(t, url), openLocks(t, url)
	payUnderLock := func(between func() error) error {
		return locks.Mutex("account:7").Do(t.Context(), func(ctx context.Context) error {
			lease, _ := pawl.LeaseOf(ctx, "account:7")
			tx, err := begin(ctx, nil)
			if err != nil {
				return err
			}
			return payIn(ctx, tx, check, between, lease)
		})
	}
	wantBalance(t, db, 100)
	noError(t, payUnderLock(nothing))
	wantBalance(t, db, 90)
	wantRefused(t, payUnderLock(func() error { return loseLease(t.Context(), other, "account:7") }))
	wantBalance(t, db, 90)
}

func TestTransactionsOfPostgreSQL(t *testing.T) {
	server := pgtest.Start(t)
	url := server.Database("app")
	server.Do("app", ledger)
	db := openDatabase(t, "pgx", url)
	wantPaidOnce(t, url, db, db.BeginTx, postgreslock.CheckLeaseSQL)

	pool, locks, other := openPool(t, url), openLocks(t, url), openLocks(t, url)
	between := nothing
	move = func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE accounts SET balance = balance - 10 WHERE id = 7"); err != nil {
			return err
		}
		return between()
	}
	noError(t, transfer(t.Context(), locks, pool))
	wantBalance(t, db, 80)
	between = func() error { return loseLease(t.Context(), other, "account:3") }
	wantRefused(t, transfer(t.Context(), locks, pool))
	wantBalance(t, db, 80)
}

// A task is done once, even if its lease is lost before the commit, and even if the
// database of the locks has forgotten its key.
func TestATaskInATransactionIsDoneOnce(t *testing.T) {
	server := pgtest.Start(t)
	url := server.Database("app")
	server.Do("app", ledger+"; CREATE TABLE done (key text PRIMARY KEY)")
	db := openDatabase(t, "pgx", url)
	pool, locks, other := openPool(t, url), openLocks(t, url), openLocks(t, url)
	runs := 0
	between := func() error { return loseLease(t.Context(), other, "payday") }
	move = func(ctx context.Context, tx pgx.Tx) error {
		runs++
		if _, err := tx.Exec(ctx, "UPDATE accounts SET balance = balance - 10 WHERE id = 7"); err != nil {
			return err
		}
		return between()
	}
	wantRefused(t, runOnce(t.Context(), locks, pool, "1"))
	wantBalance(t, db, 100)
	between = nothing
	for range 2 {
		noError(t, runOnce(t.Context(), locks, pool, "1"))
		wantBalance(t, db, 90)
		server.Do("app", "DELETE FROM pawl.locks")
	}
	if runs != 2 {
		t.Errorf("the task ran %d times; want a failed run and another one", runs)
	}
}

func TestTransactionsOfMySQL(t *testing.T) {
	server := mysqltest.Start(t)
	db := server.Open(t, mysqltest.Database)
	for _, statement := range []string{"CREATE TABLE accounts (id int PRIMARY KEY, balance int)", "INSERT INTO accounts VALUES (3, 100), (7, 100)"} {
		must(db.ExecContext(t.Context(), statement))(t)
	}
	at := "mysql://" + url.UserPassword(mysqltest.User, mysqltest.Password).String() + "@" + server.Addr + "/" + mysqltest.Database
	wantPaidOnce(t, at, db, db.BeginTx, mysqllock.CheckLease)
	noError(t, pay(t.Context(), openLocks(t, at), db))
	wantBalance(t, db, 80)
}

func TestTransactionsOfSQLite(t *testing.T) {
	lockFile := filepath.Join(t.TempDir(), "locks.db")
	t.Run("attached", func(t *testing.T) {
		db := openDatabase(t, "sqlite", filepath.Join(t.TempDir(), "data.db"))
		must(db.ExecContext(t.Context(), ledger))(t)
		url := "sqlite:" + filepath.ToSlash(lockFile)
		openLocks(t, url) // makes the file
		conn, err := attached(t.Context(), db, lockFile)
		noError(t, err)
		defer conn.Close()
		wantPaidOnce(t, url, db, conn.BeginTx, sqlitelock.CheckLease)
	})
	t.Run("beside the locks", func(t *testing.T) {
		locks := openLocks(t, "sqlite:"+filepath.ToSlash(lockFile))
		db := openDatabase(t, "sqlite", "file:"+filepath.ToSlash(lockFile)+"?_txlock=immediate")
		must(db.ExecContext(t.Context(), ledger))(t)
		err := locks.Mutex("account:7").Do(t.Context(), func(ctx context.Context) error {
			lease, _ := pawl.LeaseOf(ctx, "account:7")
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			return payIn(ctx, tx, sqlitelock.CheckLease, nothing, lease)
		})
		noError(t, err)
		wantBalance(t, db, 90)
	})
}
