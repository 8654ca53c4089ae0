package mysqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/mysqllock"
)

func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func TestCheckLeaseLetsTheHolderPassAndNobodyElse(t *testing.T) {
	_, db, d := fresh(t)
	fencetest.ChecksTheHolder(t, d, func(l driver.Lease) error {
		return mysqllock.CheckLease(ctx, begin(t, db), l)
	}, time.Sleep)
}

func TestNobodyTakesOverUntilTheCheckedTransactionEnds(t *testing.T) {
	_, db, d := fresh(t)
	c := mutex("job")
	c.TTL = 300 * time.Millisecond
	g := gets(t, d, c)
	tx := begin(t, db)
	if err := d.CheckLease(ctx, tx, fencetest.Lease("job", g.Fence)); err != nil {
		t.Fatal(err)
	}
	if err := mysqllock.CheckLease(ctx, begin(t, db), fencetest.Lease("job", g.Fence)); err != nil {
		t.Errorf("beside another one: %v", err)
	}
	time.Sleep(500 * time.Millisecond) // its lease is over
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if g, err := d.Acquire(short, mutex("job")); err == nil {
		t.Fatalf("the fence %d was granted under the transaction", g.Fence)
	}
}

func TestNoCheckedWriteIsLost(t *testing.T) {
	_, db, d := fresh(t)
	exec(t, db, "CREATE TABLE work (n INT)", "INSERT INTO work VALUES (0)")
	fencetest.ChecksEachWrite(t, d, func(l driver.Lease, pause time.Duration) error { return increment(db, l, pause) },
		func() (n int, err error) {
			err = db.QueryRowContext(ctx, "SELECT n FROM work").Scan(&n)
			return n, err
		})
}

func increment(db *sql.DB, l driver.Lease, pause time.Duration) error {
	var n int
	if err := db.QueryRowContext(ctx, "SELECT n FROM work").Scan(&n); err != nil {
		return err
	}
	time.Sleep(pause)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := mysqllock.CheckLease(ctx, tx, l); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE work SET n = ?", n+1); err != nil {
		return err
	}
	return tx.Commit()
}

func exec(t testing.TB, db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, statements ...string,
) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// In another database the lease is not known, whatever it holds in its own.
func TestCheckLeaseInAnotherDatabase(t *testing.T) {
	s, _, d := fresh(t)
	g := gets(t, d, mutex("job"))
	_, with, other := fresh(t)
	gets(t, other, mutex("job"))
	if err := mysqllock.CheckLease(ctx, begin(t, with), fencetest.Lease("job", g.Fence)); !errors.Is(err, driver.ErrStale) {
		t.Errorf("%v; want ErrStale", err)
	}
	without := begin(t, s.Open(t, s.NewDatabase(t)))
	if err := mysqllock.CheckLease(ctx, without, fencetest.Lease("job", g.Fence)); err == nil || errors.Is(err, driver.ErrStale) {
		t.Errorf("%v; want it told that there are no tables", err)
	}
}

// MariaDB can refuse to lock a row that was changed since the transaction first read,
// which a renewal does: the error says that the transaction is to be repeated.
func TestCheckLeaseInASnapshotSaysWhatToDo(t *testing.T) {
	s, db, d := fresh(t)
	c := mutex("job")
	g := gets(t, d, c)
	for isolation, repeats := range map[string]bool{"REPEATABLE-READ": true, "READ-COMMITTED": false} {
		pool := openWith(t, s, name(t, db), "innodb_snapshot_isolation=1&tx_isolation='"+isolation+"'")
		tx := begin(t, pool)
		exec(t, tx, "SELECT * FROM pawl_names")
		if answers, err := d.Renew(ctx, []driver.LeaseRef{lease(c)}); err != nil || answers[0] != nil {
			t.Fatal(answers, err)
		}
		err := mysqllock.CheckLease(ctx, tx, fencetest.Lease("job", g.Fence))
		if repeats != (err != nil) || repeats && !strings.Contains(err.Error(), "repeat the transaction") {
			t.Errorf("%s: %v", isolation, err)
		}
		_ = tx.Rollback()
		again := begin(t, pool)
		if err := mysqllock.CheckLease(ctx, again, fencetest.Lease("job", g.Fence)); err != nil {
			t.Errorf("%s, once more: %v", isolation, err)
		}
		_ = again.Rollback()
	}
}
