package mysqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/internal/servertest"
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
	t.Parallel()
	_, db, d := fresh(t)
	fencetest.ChecksTheHolder(t, d, func(leases ...driver.Lease) error {
		return mysqllock.CheckLease(ctx, begin(t, db), leases...)
	}, time.Sleep)
}

// committed checks leases in a transaction that commits.
func committed(t *testing.T, db *sql.DB) func(ctx context.Context, leases ...driver.Lease) error {
	return func(ctx context.Context, leases ...driver.Lease) error {
		tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
		if err != nil {
			t.Error(err)
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if err := mysqllock.CheckLease(ctx, tx, leases...); err != nil {
			return err
		}
		return tx.Commit()
	}
}

func TestCheckLeaseOfSeveral(t *testing.T) {
	_, db, d := fresh(t)
	check := committed(t, db)
	fencetest.ChecksSeveral(t, d, func(leases ...driver.Lease) error { return check(ctx, leases...) })
}

func TestCheckLeaseInAnyOrder(t *testing.T) {
	_, db, d := fresh(t)
	check := committed(t, db)
	fencetest.ChecksInAnyOrder(t, d, func(leases ...driver.Lease) error { return check(ctx, leases...) })
}

func TestCheckLeaseAsksTheClient(t *testing.T) {
	_, db, d := fresh(t)
	fencetest.AsksTheClient(t, d, committed(t, db))
}

// The lease names its tables, so a check in other tables is refused, and no lease looks
// lost.
func TestCheckLeaseOfOtherTables(t *testing.T) {
	_, db, d := fresh(t)
	other := over(t, db, &mysqllock.Options{Prefix: "billing_"})
	locks := make([]*pawl.Lease, 2)
	for i, d := range []*mysqllock.Driver{d, other} {
		client, err := pawl.New(d, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		if locks[i], err = client.Mutex("job").Lock(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		mysqllock.CheckLease(ctx, begin(t, db), locks[1]),
		d.CheckLease(ctx, begin(t, db), locks[1]),
		other.CheckLease(ctx, begin(t, db), locks[0]),
	} {
		if !errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrStale) || !strings.Contains(err.Error(), "other tables") {
			t.Errorf("%v; want it refused", err)
		}
	}
	if err := errors.Join(d.CheckLease(ctx, begin(t, db), locks[0]), other.CheckLease(ctx, begin(t, db), locks[1])); err != nil {
		t.Error(err)
	}
}

func TestNobodyTakesOverUntilTheCheckedTransactionEnds(t *testing.T) {
	t.Parallel()
	_, db, d := fresh(t)
	c := mutex("job")
	for c.TTL = 500 * time.Millisecond; ; c.TTL *= 2 { // on a slow machine the lease may be over before it is checked
		c.Token = driver.NewToken()
		g, err := d.Acquire(ctx, c)
		if errors.Is(err, driver.ErrUnavailable) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		tx, beside := begin(t, db), begin(t, db)
		err = errors.Join(d.CheckLease(ctx, tx, fencetest.Lease("job", g.Fence)), mysqllock.CheckLease(ctx, beside, fencetest.Lease("job", g.Fence)))
		if err == nil {
			break
		}
		if !errors.Is(err, driver.ErrStale) {
			t.Fatal(err)
		}
		_, _ = tx.Rollback(), beside.Rollback()
	}
	time.Sleep(c.TTL + 200*time.Millisecond) // its lease is over
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if g, err := d.Acquire(short, mutex("job")); err == nil {
		t.Fatalf("the fence %d was granted under the transaction", g.Fence)
	}
}

func TestNoCheckedWriteIsLost(t *testing.T) {
	t.Parallel()
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

// In another database the lease is unknown, whatever it holds in its own.
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

// MariaDB can refuse to lock a row that has changed since the transaction first read, and
// a renewal changes it: the error says to repeat the transaction.
func TestCheckLeaseInASnapshotSaysWhatToDo(t *testing.T) {
	s, db, d := fresh(t)
	c := mutex("job")
	g := gets(t, d, c)
	for isolation, repeats := range map[string]bool{"REPEATABLE-READ": true, "READ-COMMITTED": false} {
		pool := openWith(t, s, name(t, db), "innodb_snapshot_isolation=1&tx_isolation='"+isolation+"'")
		tx := begin(t, pool)
		exec(t, tx, "SELECT * FROM pawl_names")
		c.TTL += time.Hour // on a busy machine a renewal may otherwise find that the lease lasts as long already
		servertest.Renews(t, d, c)
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
