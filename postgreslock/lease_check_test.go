package postgreslock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/driver"
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

func TestGuardLetsTheHolderPassAndNobodyElse(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d, db := start(t, url), dbOf(t, url)
	c := mutex("job")
	c.TTL = 500 * time.Millisecond
	g := gets(t, d, c)
	inTx := func(name string, fence uint64) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		return postgreslock.Guard(ctx, tx, name, fence)
	}
	if err := inTx("job", g.Fence); err != nil {
		t.Errorf("the holder: %v", err)
	}
	for name, fence := range map[string]uint64{"job": g.Fence - 1, "other": g.Fence} {
		if err := inTx(name, fence); !errors.Is(err, driver.ErrStale) {
			t.Errorf("%s with %d: %v; want ErrStale", name, fence, err)
		}
	}
	time.Sleep(time.Second)
	if err := inTx("job", g.Fence); !errors.Is(err, driver.ErrStale) {
		t.Errorf("after its lease: %v; want ErrStale", err)
	}
	if err := inTx("", g.Fence); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("without a name: %v; want ErrInvalid", err)
	}
	if err := postgreslock.Guard(ctx, db, "job", g.Fence); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("without a transaction: %v; want ErrInvalid", err)
	}
}

func TestNobodyTakesOverUntilTheGuardedTransactionEnds(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d, other := start(t, url), start(t, url)
	c := mutex("job")
	c.TTL = 3 * time.Second
	g := gets(t, d, c)
	tx := begin(t, conn(t, url))
	if err := d.Guard(ctx, tx, "job", g.Fence); err != nil {
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
func TestAGuardHoldsUpNoOtherRenewal(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d := start(t, url)
	guarded, free := mutex("guarded"), mutex("free")
	g := gets(t, d, guarded)
	gets(t, d, free)
	tx := begin(t, conn(t, url))
	defer tx.Rollback(ctx)
	if err := d.Guard(ctx, tx, "guarded", g.Fence); err != nil {
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
func TestGuardLooksAtTheClockWhenItHasTheRow(t *testing.T) {
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
	if err := d.Guard(ctx, begin(t, conn(t, url)), "job", g.Fence); !errors.Is(err, driver.ErrStale) {
		t.Errorf("%v; want ErrStale, for the lease ended while it waited", err)
	}
	<-over
}

// Each of many increments a number that it read before, in transactions that end long
// after their leases. With the guard none is lost.
func TestNoGuardedWriteIsLost(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d, pool := start(t, url), poolOf(t, url, 10)
	exec(t, conn(t, url), "CREATE TABLE work (n int)", "INSERT INTO work VALUES (0)")
	var mu sync.Mutex
	var all sync.WaitGroup
	accepted, refused := 0, 0
	work := func(k int, fence uint64) error {
		var n int
		if err := pool.QueryRow(ctx, "SELECT n FROM work").Scan(&n); err != nil {
			return err
		}
		if k%3 == 0 {
			time.Sleep(100 * time.Millisecond) // longer than its lease
		}
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "UPDATE work SET n = $1", n+1); err != nil {
				return err
			}
			return postgreslock.Guard(ctx, tx, "job", fence)
		})
	}
	for range 6 {
		all.Go(func() {
			for k := range 40 {
				c := mutex("job")
				c.TTL = 60 * time.Millisecond
				g, err := d.Acquire(ctx, c)
				if err != nil {
					time.Sleep(5 * time.Millisecond)
					continue
				}
				err = work(k, g.Fence)
				mu.Lock()
				switch {
				case err == nil:
					accepted++
				case errors.Is(err, driver.ErrStale):
					refused++
				default:
					t.Error(err)
				}
				mu.Unlock()
				_ = d.Release(ctx, lease(c))
			}
		})
	}
	all.Wait()
	var n int
	if err := pool.QueryRow(ctx, "SELECT n FROM work").Scan(&n); err != nil || n != accepted {
		t.Errorf("%d, %v after %d writes that were accepted", n, err, accepted)
	}
	t.Logf("%d were accepted, %d refused", accepted, refused)
}

// In another database the lease is not known, whatever it holds in its own.
func TestGuardInAnotherDatabase(t *testing.T) {
	t.Parallel()
	server, url, name := fresh(t)
	d := start(t, url)
	g := gets(t, d, mutex("job"))
	other := server.Database(name + "_2")
	if err := postgreslock.Guard(ctx, begin(t, conn(t, other)), "job", g.Fence); err == nil || errors.Is(err, driver.ErrStale) {
		t.Errorf("%v; want it told that there are no tables", err)
	}
	gets(t, start(t, other), mutex("job"))
	if err := postgreslock.Guard(ctx, begin(t, conn(t, other)), "job", g.Fence); !errors.Is(err, driver.ErrStale) {
		t.Errorf("%v; want ErrStale", err)
	}
}
