package postgreslock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/postgreslock"
)

func begin(t testing.TB, c *pgx.Conn) pgx.Tx {
	t.Helper()
	tx, err := c.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func TestCheckLeaseLetsTheHolderPassAndNobodyElse(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d, db := start(t, url), dbOf(t, url, 30)
	inTx := func(l driver.Lease) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		return postgreslock.CheckLeaseSQL(ctx, tx, l)
	}
	fencetest.ChecksTheHolder(t, d, inTx, time.Sleep)
	c := conn(t, url)
	fencetest.ChecksTheHolder(t, d, func(l driver.Lease) error {
		tx := begin(t, c)
		defer tx.Rollback(ctx)
		return postgreslock.CheckLease(ctx, tx, l)
	}, time.Sleep)
}

func TestNobodyTakesOverUntilTheCheckedTransactionEnds(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d, other := start(t, url), start(t, url)
	c := mutex("job")
	c.TTL = 3 * time.Second
	g := gets(t, d, c)
	tx := begin(t, conn(t, url))
	if err := d.CheckLease(ctx, tx, fencetest.Lease("job", g.Fence)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3500 * time.Millisecond) // its lease is over
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if g, err := other.Acquire(short, mutex("job")); err == nil {
		t.Fatalf("the fence %d was granted under the transaction", g.Fence)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	gets(t, other, mutex("job"))
}

// The leases of other names are renewed while one is guarded, though all are in one
// request.
func TestALeaseCheckHoldsUpNoOtherRenewal(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d := start(t, url)
	guarded, free := mutex("guarded"), mutex("free")
	g := gets(t, d, guarded)
	gets(t, d, free)
	tx := begin(t, conn(t, url))
	defer tx.Rollback(ctx)
	if err := d.CheckLease(ctx, tx, fencetest.Lease("guarded", g.Fence)); err != nil {
		t.Fatal(err)
	}
	free.TTL = 10 * time.Minute
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, _ = d.Renew(short, []driver.LeaseRef{lease(guarded), lease(free)})
	e, err := d.Inspect(ctx, "free")
	if err != nil || len(e.Holders) != 1 || e.Holders[0].ExpiresIn < time.Minute {
		t.Errorf("%+v, %v; want it renewed", e, err)
	}
}

// The time is from after the wait for the row, not from before it.
func TestCheckLeaseLooksAtTheClockWhenItHasTheRow(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d := start(t, url)
	c := mutex("job")
	c.TTL = 700 * time.Millisecond
	g := gets(t, d, c)
	blocker := begin(t, conn(t, url))
	if _, err := blocker.Exec(ctx, "SELECT FROM pawl.locks FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	over := make(chan error)
	go func() {
		time.Sleep(1200 * time.Millisecond)
		over <- blocker.Rollback(ctx)
	}()
	if err := d.CheckLease(ctx, begin(t, conn(t, url)), fencetest.Lease("job", g.Fence)); !errors.Is(err, driver.ErrStale) {
		t.Errorf("%v; want ErrStale, for the lease ended while it waited", err)
	}
	<-over
}

func TestNoCheckedWriteIsLost(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d, pool := start(t, url), poolOf(t, url, 10)
	exec(t, conn(t, url), "CREATE TABLE work (n int)", "INSERT INTO work VALUES (0)")
	read := func() (n int, err error) {
		err = pool.QueryRow(ctx, "SELECT n FROM work").Scan(&n)
		return n, err
	}
	fencetest.ChecksEachWrite(t, d, func(l driver.Lease, pause time.Duration) error {
		n, err := read()
		if err != nil {
			return err
		}
		time.Sleep(pause)
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "UPDATE work SET n = $1", n+1); err != nil {
				return err
			}
			return postgreslock.CheckLease(ctx, tx, l)
		})
	}, read)
}

// In another database the lease is not known, whatever it holds in its own.
func TestCheckLeaseInAnotherDatabase(t *testing.T) {
	t.Parallel()
	server, url, name := fresh(t)
	d := start(t, url)
	g := gets(t, d, mutex("job"))
	other := server.Database(name + "_2")
	if err := postgreslock.CheckLease(ctx, begin(t, conn(t, other)), fencetest.Lease("job", g.Fence)); err == nil || errors.Is(err, driver.ErrStale) {
		t.Errorf("%v; want it told that there are no tables", err)
	}
	gets(t, start(t, other), mutex("job"))
	if err := postgreslock.CheckLease(ctx, begin(t, conn(t, other)), fencetest.Lease("job", g.Fence)); !errors.Is(err, driver.ErrStale) {
		t.Errorf("%v; want ErrStale", err)
	}
}
