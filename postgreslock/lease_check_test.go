package postgreslock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/postgreslock"
)

func begin(t testing.TB, c *pgx.Conn) pgx.Tx {
	t.Helper()
	tx, err := c.Begin(ctx)
	noError(t, err)
	return tx
}

// engines returns two databases of locks, with transactions of database/sql and of pgx.
func engines(t *testing.T) []fencetest.Engine {
	_, url, _ := freshDatabase(t)
	_, other, _ := freshDatabase(t)
	return []fencetest.Engine{
		fencetest.SQL(openDriver(t, url), dbOf(t, url, 30), postgreslock.CheckLeaseSQL),
		pgxEngine(openDriver(t, other), poolOf(t, other, 30), postgreslock.CheckLease),
	}
}

// pgxEngine returns the engine of a pool of pgx.
func pgxEngine(d driver.Driver, pool *pgxpool.Pool, check func(ctx context.Context, tx pgx.Tx, leases ...driver.Lease) error) fencetest.Engine {
	return fencetest.Engine{Locks: d, Sleep: time.Sleep, Transact: func(f func(fencetest.Tx) error) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			return f(fencetest.Tx{
				Check: func(ctx context.Context, leases ...driver.Lease) error { return check(ctx, tx, leases...) },
				Exec:  func(statement string) error { _, err := tx.Exec(ctx, statement); return err },
				Read:  func(query string) (n int, err error) { err = tx.QueryRow(ctx, query).Scan(&n); return n, err },
			})
		})
	}}
}

func TestCheckLease(t *testing.T) {
	for name, check := range fencetest.Checks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, e := range engines(t) {
				check(t, e)
			}
		})
	}
}

// A lease records its tables. So a check in other tables returns ErrInvalid, and not
// ErrStale.
func TestCheckLeaseRefusesLeasesOfOtherTables(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	pool, db := poolOf(t, url, 10), dbOf(t, url, 10)
	var all []fencetest.Engine
	for _, o := range []*postgreslock.Options{nil, {Schema: "locks"}, {Prefix: "p_"}, {Schema: "locks", Prefix: "p_"}} {
		d := driverOver(t, pool, o)
		all = append(all, fencetest.SQL(d, db, d.CheckLeaseSQL), pgxEngine(d, pool, d.CheckLease))
	}
	defaultDriver := all[0].Locks
	all = append(all, fencetest.SQL(defaultDriver, db, postgreslock.CheckLeaseSQL), pgxEngine(defaultDriver, pool, postgreslock.CheckLease))
	fencetest.ChecksOtherTables(t, all...)
}

// A transaction with an older snapshot does not see the row that a renewal has changed.
func TestCheckLeaseInASnapshotHasAHint(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d, c := openDriver(t, url), conn(t, url)
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
		m.TTL += time.Hour // on a busy machine the lease may already last longer than one TTL
		if err := check(func() { renews(t, d, m) }); err == nil || errors.Is(err, driver.ErrStale) || !strings.Contains(err.Error(), "repeat the transaction") {
			t.Errorf("%s: %v; want the hint to repeat the transaction", isolation, err)
		}
		if err := check(func() {}); err != nil {
			t.Errorf("%s, without a renewal: %v", isolation, err)
		}
	}
}

// Leases of other names can be renewed while one is checked, even in the same request.
func TestALeaseCheckDelaysNoOtherRenewal(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d := openDriver(t, url)
	guarded, free := mutex("guarded"), mutex("free")
	g := gets(t, d, guarded)
	gets(t, d, free)
	tx := begin(t, conn(t, url))
	defer tx.Rollback(ctx)
	noError(t, d.CheckLease(ctx, tx, fencetest.Lease("guarded", g.Fence)))
	free.TTL = time.Hour
	callerCtx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = d.Renew(callerCtx, []driver.LeaseRef{lease(guarded), lease(free)})
	}()
	eventually(t, "the other lease is renewed", func() bool {
		e, err := d.Inspect(ctx, "free")
		return err == nil && len(e.Holders) == 1 && e.Holders[0].ExpiresIn > 30*time.Minute
	})
	cancel()
	<-ended
}

// The check reads the clock after the wait for the row, not before it.
func TestCheckLeaseReadsTheClockAfterTheRowLock(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d := openDriver(t, url)
	c := mutex("job")
	c.TTL = 700 * time.Millisecond
	g, err := d.Acquire(ctx, c)
	// On a slow machine the lease may expire before the server has answered.
	for ; errors.Is(err, driver.ErrUnavailable); g, err = d.Acquire(ctx, c) {
		c.Token = driver.NewToken()
	}
	noError(t, err)
	blocker := begin(t, conn(t, url))
	must(blocker.Exec(ctx, "SELECT FROM pawl.locks FOR UPDATE"))(t)
	checker, checked := begin(t, conn(t, url)), make(chan error, 1)
	go func() { checked <- d.CheckLease(ctx, checker, fencetest.Lease("job", g.Fence)) }()
	eventually(t, "the lease has expired", func() bool { // after a slow request, seconds after its TTL
		e, err := d.Inspect(ctx, "job")
		return err == nil && len(e.Holders) == 0
	})
	noError(t, blocker.Rollback(ctx))
	if err := <-checked; !errors.Is(err, driver.ErrStale) {
		t.Errorf("%v; want ErrStale, because the lease expired during the wait", err)
	}
}

// In another database the lease is unknown.
func TestCheckLeaseFailsInAnotherDatabase(t *testing.T) {
	t.Parallel()
	server, url, name := freshDatabase(t)
	d := openDriver(t, url)
	g := gets(t, d, mutex("job"))
	other := server.Database(name + "_2")
	if err := postgreslock.CheckLease(ctx, begin(t, conn(t, other)), fencetest.Lease("job", g.Fence)); err == nil || errors.Is(err, driver.ErrStale) {
		t.Errorf("%v; want an error about missing tables", err)
	}
	gets(t, openDriver(t, other), mutex("job"))
	if err := postgreslock.CheckLease(ctx, begin(t, conn(t, other)), fencetest.Lease("job", g.Fence)); !errors.Is(err, driver.ErrStale) {
		t.Errorf("%v; want ErrStale", err)
	}
}
