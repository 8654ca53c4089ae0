package postgreslock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl"
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
	inTx := func(leases ...driver.Lease) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		return postgreslock.CheckLeaseSQL(ctx, tx, leases...)
	}
	fencetest.ChecksTheHolder(t, d, inTx, time.Sleep)
	c := conn(t, url)
	fencetest.ChecksTheHolder(t, d, func(leases ...driver.Lease) error {
		tx := begin(t, c)
		defer tx.Rollback(ctx)
		return postgreslock.CheckLease(ctx, tx, leases...)
	}, time.Sleep)
}

func TestCheckLeaseOfSeveral(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d, db := start(t, url), dbOf(t, url, 10)
	fencetest.ChecksSeveral(t, d, func(leases ...driver.Lease) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		return postgreslock.CheckLeaseSQL(ctx, tx, leases...)
	})
	_, url, _ = fresh(t)
	d, pool := start(t, url), poolOf(t, url, 10)
	check := func(ctx context.Context, leases ...driver.Lease) error {
		return pgx.BeginFunc(context.WithoutCancel(ctx), pool, func(tx pgx.Tx) error {
			return postgreslock.CheckLease(ctx, tx, leases...)
		})
	}
	inTx := func(leases ...driver.Lease) error { return check(ctx, leases...) }
	fencetest.ChecksInAnyOrder(t, d, inTx)
	fencetest.AsksTheClient(t, start(t, url), check)
}

// The lease names its tables, so a check in other tables is refused, and no lease looks
// lost.
func TestCheckLeaseOfOtherTables(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	pool := poolOf(t, url, 10)
	options := []*postgreslock.Options{nil, {Schema: "locks"}, {Prefix: "p_"}, {Schema: "locks", Prefix: "p_"}}
	var drivers []*postgreslock.Driver
	var leases []*pawl.Lease
	for _, o := range options {
		d, err := concrete(postgreslock.New(pool, o))
		if err != nil {
			t.Fatal(err)
		}
		locks, err := pawl.New(d, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locks.Close() })
		l, err := locks.Mutex("job").Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		drivers, leases = append(drivers, d), append(leases, l)
	}
	for i, d := range append(drivers, nil) {
		for j, l := range leases {
			err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if d == nil {
					return postgreslock.CheckLease(ctx, tx, l)
				}
				return d.CheckLease(ctx, tx, l)
			})
			switch {
			case i%len(drivers) == j && err != nil:
				t.Errorf("%d of %d: %v", j, i, err)
			case i%len(drivers) != j && (!errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrStale) || !strings.Contains(err.Error(), "other tables")):
				t.Errorf("%d of %d: %v; want it refused", j, i, err)
			}
		}
	}
}

// A renewal changes the row of the name, which an older snapshot does not see.
func TestCheckLeaseInASnapshotSaysWhatToDo(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d, c := start(t, url), conn(t, url)
	m := mutex("job")
	g := gets(t, d, m)
	for _, isolation := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		check := func(between func()) error {
			return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: isolation}, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "SELECT FROM pawl.locks"); err != nil {
					return err
				}
				between()
				return postgreslock.CheckLease(ctx, tx, fencetest.Lease("job", g.Fence))
			})
		}
		m.TTL += time.Hour // on a busy machine a renewal may otherwise find that the lease lasts as long already
		if err := check(func() { renews(t, d, m) }); err == nil || errors.Is(err, driver.ErrStale) || !strings.Contains(err.Error(), "repeat the transaction") {
			t.Errorf("%s: %v", isolation, err)
		}
		if err := check(func() {}); err != nil {
			t.Errorf("%s, once more: %v", isolation, err)
		}
	}
}

func TestNobodyTakesOverUntilTheCheckedTransactionEnds(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d, other := start(t, url), start(t, url)
	c := mutex("job")
	c.TTL = time.Second
	g := gets(t, d, c)
	tx := begin(t, conn(t, url))
	for { // on a slow machine the lease may be over before it is checked
		err := d.CheckLease(ctx, tx, fencetest.Lease("job", g.Fence))
		if err == nil {
			break
		}
		if !errors.Is(err, driver.ErrStale) {
			t.Fatal(err)
		}
		c.Token, c.TTL = driver.NewToken(), 2*c.TTL
		g = gets(t, d, c)
	}
	time.Sleep(c.TTL + 100*time.Millisecond) // its lease is over
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

// The leases of other names are renewed while one is checked, even in the same request.
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
	free.TTL = time.Hour
	brief, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = d.Renew(brief, []driver.LeaseRef{lease(guarded), lease(free)})
	}()
	eventually(t, "the other one is renewed", func() bool {
		e, err := d.Inspect(ctx, "free")
		return err == nil && len(e.Holders) == 1 && e.Holders[0].ExpiresIn > 30*time.Minute
	})
	cancel()
	<-ended
}

// The check reads the clock after the wait for the row, not before it.
func TestCheckLeaseLooksAtTheClockWhenItHasTheRow(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d := start(t, url)
	c := mutex("job")
	c.TTL = 700 * time.Millisecond
	g, err := d.Acquire(ctx, c)
	// On a slow machine the lease may be over before the server has answered.
	for ; errors.Is(err, driver.ErrUnavailable); g, err = d.Acquire(ctx, c) {
		c.Token = driver.NewToken()
	}
	if err != nil {
		t.Fatal(err)
	}
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

// In another database the lease is unknown, whatever it holds in its own.
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
