package postgreslock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// client returns a client with its own driver.
func client(t testing.TB, url string) *pawl.Client {
	t.Helper()
	return servertest.Client(t, open(t, url))
}

// A restart of the server loses no lock: held names stay held, with their fences, and the
// waiter gets the name.
func TestAServerThatIsRestartedLosesNothing(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "fsync=on")
	servertest.RidesThrough(t, open(t, server.URL("postgres")), open(t, server.URL("postgres")), func() {
		server.Kill()
		time.Sleep(500 * time.Millisecond)
		server.Run()
	})
}

// No lock is lost while all connections are terminated again and again.
func TestConnectionsThatAreTerminatedCostNothing(t *testing.T) {
	skipIfShort(t, "it runs for long")
	t.Parallel()
	_, url, name := freshDatabase(t)
	killer := conn(t, url)
	servertest.Storm(t, []driver.Driver{open(t, url), open(t, url), open(t, url), open(t, url)}, func() {
		exec(t, killer, fmt.Sprintf("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s' AND pid <> pg_backend_pid()", name))
	})
}

// The driver replaces a lost listening connection, and delivers the missed signals.
func TestMissedSignalsAreDeliveredAfterReconnecting(t *testing.T) {
	t.Parallel()
	server, url, name := freshDatabase(t)
	a, b := openDriver(t, url), openDriver(t, url)
	signals := listen(t, b)
	first, second := mutex("job"), queued("job")
	gets(t, a, first)
	isRefused(t, b, second)
	killListeners := "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + name + "' AND query LIKE 'LISTEN%'"
	eventually(t, "both listen", func() bool { return count(t, conn(t, url), countListeners) == 2 })
	server.Do(name, killListeners)
	releases(t, a, first)
	wantSignal(t, signals, driver.SignalGranted, second.Token)
	exec(t, conn(t, url), killListeners)
	noError(t, a.Break(ctx, "job", gets(t, b, second).Fence, 0, driver.Owner{Host: "operator"}))
	wantSignal(t, signals, driver.SignalLost, second.Token)
}

// If all connections of the pool are taken, the error says so. Later, locks work again.
func TestErrorsNameAnExhaustedPool(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	pool := poolOf(t, url, 2)
	d := driverOver(t, pool, nil)
	c := mutex("job")
	gets(t, d, c)
	var taken []interface{ Release() }
	for range 2 {
		conn, err := pool.Acquire(ctx)
		noError(t, err)
		taken = append(taken, conn)
	}
	shortCtx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err := d.Renew(shortCtx, []driver.LeaseRef{lease(c)})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "all connections of the pool are in use") {
		t.Errorf("Renew: %v; want the end of its ctx, and the exhausted pool", err)
	}
	wantDriverError(t, err, false, "give locks a pool of their own")
	for _, conn := range taken {
		conn.Release()
	}
	renews(t, d, c)
}

// Sessions with the isolation level serializable often fail when several use one row. The
// caller does not see these failures.
func TestSerializationFailuresAreRetried(t *testing.T) {
	t.Parallel()
	_, url, name := freshDatabase(t)
	exec(t, conn(t, url), "ALTER DATABASE "+pgx.Identifier{name}.Sanitize()+" SET default_transaction_isolation = 'serializable'")
	var all sync.WaitGroup
	for range 4 {
		d := openDriver(t, url)
		all.Go(func() {
			for range 50 {
				c := servertest.Reader("job")
				if _, err := d.Acquire(ctx, c); err != nil {
					t.Error(err)
					return
				}
				if err := d.Release(ctx, lease(c)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// A restart of the pooler loses no lock.
func TestAPoolerThatIsRestartedLosesNothing(t *testing.T) {
	skipIfShort(t, "a pooler that is restarted")
	t.Parallel()
	server := pgtest.Start(t)
	pooler := pgtest.StartPooler(t, server, "transaction")
	servertest.RidesThrough(t, open(t, pooler.URL("postgres")), open(t, pooler.URL("postgres")), func() {
		pooler.Kill()
		time.Sleep(300 * time.Millisecond)
		pooler.Run()
	})
}

// Behind PgBouncer in session mode the driver tests whether signals arrive.
func TestBehindASessionPoolerTheDriverDetectsPush(t *testing.T) {
	t.Parallel()
	server, url, name := freshDatabase(t)
	d := openDriver(t, pgtest.StartPooler(t, server, "session").URL(name))
	if d.Properties().PushesGrants {
		t.Error("PushesGrants is true before the test")
	}
	gets(t, d, mutex("job"))
	eventually(t, "PushesGrants is true", func() bool { return d.Properties().PushesGrants })
	if direct := openDriver(t, url); !direct.Properties().PushesGrants {
		t.Error("PushesGrants is false without a pooler")
	}
}

// Many leases are renewed in one statement.
func TestRenewalsShareAStatement(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d, sent := openTraced(t, url)
	var leases []driver.LeaseRef
	leaseCount := 1000
	if testing.Short() {
		leaseCount = 200
	}
	for i := range leaseCount {
		c := mutex(fmt.Sprintf("job %d", i))
		c.TTL = 10 * time.Minute
		gets(t, d, c)
		c.TTL = 20 * time.Minute
		leases = append(leases, lease(c))
	}
	// A busy machine may need more statements: a swap outside its window is repeated.
	eventually(t, "one statement renews all leases", func() bool {
		before := sent.count("")
		answers, err := d.Renew(ctx, leases)
		noError(t, errors.Join(append(answers, err)...))
		return sent.count("")-before == 1
	})
}

// A missing table is a permanent error, and its names are not free.
func TestATableThatIsGoneIsNoFreeName(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d := openDriver(t, url)
	gets(t, d, mutex("job"))
	exec(t, conn(t, url), "DROP SCHEMA pawl CASCADE")
	if _, err := d.Acquire(ctx, mutex("job")); !isPermanent(err) {
		t.Errorf("%v; want a permanent error", err)
	}
}

// If another transaction keeps the row locked, the error says so.
func TestErrorsNameALockedRow(t *testing.T) {
	skipIfShort(t, "it waits for 10 s")
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d := openDriver(t, url)
	c := mutex("job")
	g := gets(t, d, c)
	tx := begin(t, conn(t, url))
	noError(t, d.CheckLease(ctx, tx, fencetest.Lease("job", g.Fence)))
	boundedCtx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := d.Release(boundedCtx, lease(c)); !errors.Is(err, driver.ErrUnavailable) || !strings.Contains(err.Error(), "CheckLease") {
		t.Errorf("%v; want a hint at CheckLease", err)
	}
	noError(t, tx.Rollback(ctx))
	releases(t, d, c)
}

func TestConnectionsThatWentSilentAreReplaced(t *testing.T) {
	skipIfShort(t, "it waits for 15 s")
	t.Parallel()
	server, url, _ := freshDatabase(t)
	d, proxy := openThroughProxy(t, server, url)
	servertest.CheckSilentConnections(t, proxy, d, openDriver(t, url))
}
