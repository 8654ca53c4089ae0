package postgreslock_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/postgreslock"
)

// A request that ends before a slow server answers gives its connection back when the
// answer comes. Otherwise each request would bring the server a new connection.
func TestARequestThatTimesOutKeepsItsConnection(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	pool := poolOf(t, server.URL("postgres"), 4)
	d := opened(t)(postgreslock.New(pool, nil))
	defer d.Close()
	held := mutex("held")
	gets(t, d, held)
	waits(t, d, queued("held"))
	pool.Reset()
	fill(t, pool)
	hasBeenSlow(t, server, d, held)
	before := pool.Stat().NewConnsCount()
	for i := range 5 {
		server.Pause()
		for what, do := range map[string]func(ctx context.Context) error{
			"Acquire":              func(ctx context.Context) error { _, err := d.Acquire(ctx, mutex(fmt.Sprint("free", i))); return err },
			"Acquire in the queue": func(ctx context.Context) error { _, err := d.Acquire(ctx, queued("held")); return err },
			"Renew":                func(ctx context.Context) error { _, err := d.Renew(ctx, []driver.LeaseRef{lease(held)}); return err },
		} {
			brief, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			if err := do(brief); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s while the server hangs: %v; want the end of its ctx", what, err)
			}
			cancel()
		}
		server.Resume()
		renews(t, d, held)
	}
	if n := pool.Stat().NewConnsCount() - before; n > 0 {
		t.Errorf("%d connections were made instead of those of requests that timed out", n)
	}
}

// A request that waits for a row, and that its caller has given up, is no step: not even
// where it finds places that have lapsed.
func TestARequestWithoutACallerIsNoStep(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	d, other := start(t, server.URL("postgres")), conn(t, server.URL("postgres"))
	held, brief := mutex("held"), queued("held")
	brief.QueueTTL = 300 * time.Millisecond
	gets(t, d, held)
	hasBeenSlow(t, server, d, held)
	waits(t, d, brief)
	lapsed := time.After(brief.QueueTTL + 200*time.Millisecond)
	exec(t, other, "BEGIN", "SELECT FROM pawl.locks WHERE name = 'held' FOR UPDATE")
	gone, cancel := context.WithCancel(ctx)
	answer := make(chan error)
	go func() { answer <- d.Release(gone, lease(held)) }()
	eventually(t, "the request waits for the row", func() bool {
		return count(t, other, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") > 0
	})
	<-lapsed
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("Release: %v; want the end of its ctx", err)
	}
	exec(t, other, "COMMIT")
	renews(t, d, held)
	if e, err := d.Inspect(ctx, "held"); err != nil || len(e.Holders) != 1 || len(e.Waiters) != 0 {
		t.Errorf("%+v, %v; want one holder", e, err)
	}
}

// Requests without a caller that wait for a row keep no more connections than others that
// wait for a row. The rest of the pool is for renewals of other names.
func TestRequestsThatWaitForARowLeaveConnectionsToOthers(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	pool := poolOf(t, server.URL("postgres"), 4)
	d := opened(t)(postgreslock.New(pool, nil))
	defer d.Close()
	mine := mutex("mine")
	gets(t, d, mine)
	gets(t, d, mutex("locked"))
	fill(t, pool)
	other := conn(t, server.URL("postgres"))
	exec(t, other, "BEGIN", "SELECT FROM pawl.locks WHERE name = 'locked' FOR UPDATE")
	for range 8 { // more than there are connections
		gone, cancel := context.WithCancel(ctx) // without a deadline it waits for 10 s
		done := make(chan error)
		go func() { done <- d.Release(gone, lease(mutex("locked"))) }()
		time.Sleep(100 * time.Millisecond)
		cancel()
		<-done
	}
	if n := pool.Stat().AcquiredConns(); n > 2 {
		t.Errorf("%d of 4 connections wait for one row", n)
	}
	renews(t, d, mine)
}

// A request without a caller that passes a name on to this client tells it.
func TestARequestWithoutACallerDeliversItsSignals(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	d, other := start(t, server.URL("postgres")), conn(t, server.URL("postgres"))
	held, next := mutex("held"), queued("held")
	next.QueueTTL = time.Hour
	gets(t, d, held)
	hasBeenSlow(t, server, d, held)
	waits(t, d, next)
	heard := listen(t, d)
	exec(t, other, "SET synchronous_commit = local", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
	eventually(t, "commits wait for a standby", func() bool {
		return count(t, other, "SELECT count(*) FROM pg_settings WHERE name = 'synchronous_standby_names' AND setting = 'nobody'") == 1
	})
	brief, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	err := d.Release(brief, lease(held))
	exec(t, other, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Release: %v; want the end of its ctx", err)
	}
	select {
	case s := <-heard:
		if s.Token != next.Token {
			t.Errorf("heard %+v; want the grant", s)
		}
	case <-time.After(time.Minute):
		t.Error("the waiter heard of no grant")
	}
}

// A connection whose server is silent makes room for another one soon. pgx waits 15 s for
// its end.
func TestASilentConnectionMakesRoom(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	pool := poolOf(t, server.URL("postgres"), 1)
	d := opened(t)(postgreslock.New(pool, nil))
	defer d.Close()
	held := mutex("held")
	held.TTL = 5 * time.Minute
	gets(t, d, held)
	c, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	pid := int(c.Conn().PgConn().PID())
	c.Release()
	renews(t, d, held) // pgxpool asks a connection first that was idle for a second
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	brief, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
	defer cancel()
	if _, err := d.Renew(brief, []driver.LeaseRef{lease(held)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Renew while its connection is silent: %v; want the end of its ctx", err)
	}
	soon, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if answers, err := d.Renew(soon, []driver.LeaseRef{lease(held)}); err != nil || answers[0] != nil {
		t.Errorf("Renew with another connection: %v, %v", answers, err)
	}
}

// A connection whose answer does not come is closed, and Close waits for none.
func TestAConnectionWithoutAnAnswerIsClosed(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	d := open(t, server.URL("postgres"))
	held := mutex("held")
	gets(t, d, held)
	hasBeenSlow(t, server, d, held)
	server.Pause()
	defer server.Resume()
	brief, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := d.Renew(brief, []driver.LeaseRef{lease(held)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Renew while the server hangs: %v; want the end of its ctx", err)
	}
	done := make(chan error, 1)
	go func() { done <- d.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Close: %v", err)
		}
	case <-time.After(5 * time.Minute): // pgx waits 15 s for the end of each connection
		t.Fatal("Close waits for an answer that does not come")
	}
}

// hasBeenSlow has a driver notice that its server is slow.
func hasBeenSlow(t testing.TB, server *pgtest.Server, d *postgreslock.Driver, held driver.Claim) {
	t.Helper()
	server.Pause()
	resumed := make(chan struct{})
	time.AfterFunc(300*time.Millisecond, func() {
		defer close(resumed)
		server.Resume()
	})
	renews(t, d, held)
	<-resumed // a Pause that comes next must not meet it
}

// fill makes all connections of a pool.
func fill(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	for range pool.Config().MaxConns {
		c, err := pool.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
	}
}
