package postgreslock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/postgreslock"
)

// A request that times out before a slow server answers returns its connection to the
// pool after the answer. Otherwise each such request would open a new connection.
func TestARequestThatTimesOutKeepsItsConnection(t *testing.T) {
	t.Parallel()
	server, url, _ := freshDatabase(t)
	proxy := servertest.StartProxy(t, server.Addr)
	pool := poolOf(t, strings.Replace(url, server.Addr, proxy.Addr, 1), 4)
	d := driverOver(t, pool, nil)
	held := mutex("held")
	gets(t, d, held)
	isRefused(t, d, queued("held"))
	pool.Reset()
	slowDown(t, proxy, d, held)
	for i, kept := 0, 0; kept < 5; i++ {
		fillPool(t, pool)
		before := pool.Stat().NewConnsCount()
		began := time.Now()
		resume := proxy.Hold()
		for what, do := range map[string]func(ctx context.Context) error{
			"Acquire":              func(ctx context.Context) error { _, err := d.Acquire(ctx, mutex(fmt.Sprint("free", i))); return err },
			"Acquire in the queue": func(ctx context.Context) error { _, err := d.Acquire(ctx, queued("held")); return err },
			"Renew":                func(ctx context.Context) error { _, err := d.Renew(ctx, []driver.LeaseRef{lease(held)}); return err },
		} {
			briefCtx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			if err := do(briefCtx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s while the server hangs: %v; want the end of its ctx", what, err)
			}
			cancel()
		}
		resume()
		renews(t, d, held)
		switch n := pool.Stat().NewConnsCount() - before; {
		case time.Since(began) > answerTimeout: // the driver has closed the connections
		case n > 0:
			t.Fatalf("the pool replaced %d connections of requests that timed out", n)
		default:
			kept++
		}
	}
}

// answerTimeout has the value of the driver's constant.
const answerTimeout = 2 * time.Second

// Even if their callers have returned, only a quarter of the connections wait for locked
// rows. The other connections are for renewals of other names.
func TestRequestsThatWaitForARowLeaveConnectionsToOthers(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	pool := poolOf(t, url, 4)
	d := driverOver(t, pool, nil)
	mine := mutex("mine")
	gets(t, d, mine)
	gets(t, d, mutex("locked"))
	fillPool(t, pool)
	other, observer := conn(t, url), conn(t, url)
	exec(t, other, "BEGIN", "SELECT FROM pawl.locks WHERE name = 'locked' FOR UPDATE")
	release := func(waitFor func()) {
		callerCtx, cancel := context.WithCancel(ctx)
		done := make(chan error)
		go func() { done <- d.Release(callerCtx, lease(mutex("locked"))) }()
		waitFor()
		cancel()
		<-done
	}
	// Each statement waits twice as long as the last one.
	release(func() {
		eventually(t, "a statement waits for long", func() bool { return countWaiting(t, observer, 2*time.Second) > 0 })
	})
	for range 8 { // more than there are connections
		release(func() { time.Sleep(200 * time.Millisecond) })
		if n := countWaiting(t, observer, time.Second); n > 1 {
			t.Fatalf("%d of 4 connections wait for one row, want 1 at most", n)
		}
	}
	renews(t, d, mine)
}

// A request without a caller delivers the grant of a waiter of the same client.
func TestARequestWithoutACallerDeliversItsSignals(t *testing.T) {
	t.Parallel()
	server, url, _ := freshDatabase(t)
	d, proxy := openThroughProxy(t, server, url)
	first, other := mutex("first"), conn(t, url)
	gets(t, d, first)
	exec(t, other, "CREATE TABLE gate (closed bool)", "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"+
		" WHILE EXISTS (SELECT FROM public.gate) LOOP PERFORM pg_sleep(0.02); END LOOP; RETURN NULL; END $$",
		"CREATE TRIGGER slow AFTER UPDATE ON pawl.locks FOR EACH ROW EXECUTE FUNCTION wait()")
	slowDown(t, proxy, d, first)
	signals, nextTokens := listen(t, d), map[driver.Token]bool{}
	for i := range 5 { // on a slow machine the driver closes the connection
		held, next := mutex(fmt.Sprint("held", i)), queued(fmt.Sprint("held", i))
		nextTokens[next.Token] = true
		gets(t, d, held)
		isRefused(t, d, next)
		exec(t, other, "INSERT INTO gate VALUES (true)")
		callerCtx, cancel := context.WithCancel(ctx)
		answer := make(chan error)
		go func() { answer <- d.Release(callerCtx, lease(held)) }()
		eventually(t, "the release is under way", func() bool {
			return count(t, other, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'") > 0
		})
		cancel()
		if err := <-answer; !errors.Is(err, context.Canceled) {
			t.Fatalf("Release: %v; want the end of its ctx", err)
		}
		exec(t, other, "DELETE FROM gate")
		select {
		case s := <-signals:
			if !nextTokens[s.Token] {
				t.Errorf("got the signal %+v; want the grant", s)
			}
			return
		case <-time.After(5 * time.Second):
		}
	}
	t.Error("no waiter got its grant")
}

// The pool soon replaces a connection whose server is silent. pgx alone would wait 15 s.
func TestASilentConnectionLeavesThePool(t *testing.T) {
	skipIfShort(t, "a slow machine can miss its limit of 10 s")
	t.Parallel()
	server, url, _ := freshDatabase(t)
	proxy := servertest.StartProxy(t, server.Addr)
	d := driverOver(t, poolOf(t, strings.Replace(url, server.Addr, proxy.Addr, 1), 1), nil)
	held := mutex("held")
	gets(t, d, held)
	renews(t, d, held) // pgxpool would first ping a connection that was idle for a second
	proxy.Freeze()
	briefCtx, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
	defer cancel()
	if _, err := d.Renew(briefCtx, []driver.LeaseRef{lease(held)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Renew while its connection is silent: %v; want the end of its ctx", err)
	}
	retryCtx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if answers, err := d.Renew(retryCtx, []driver.LeaseRef{lease(held)}); err != nil || answers[0] != nil {
		t.Errorf("Renew with another connection: %v, %v", answers, err)
	}
}

// Close does not wait for an answer that does not arrive, and closes the connection.
func TestAConnectionWithoutAnAnswerIsClosed(t *testing.T) {
	t.Parallel()
	server, url, _ := freshDatabase(t)
	proxy := servertest.StartProxy(t, server.Addr)
	d := open(t, strings.Replace(url, server.Addr, proxy.Addr, 1))
	held := mutex("held")
	gets(t, d, held)
	slowDown(t, proxy, d, held)
	resume := proxy.Hold()
	defer resume()
	briefCtx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := d.Renew(briefCtx, []driver.LeaseRef{lease(held)}); !errors.Is(err, context.DeadlineExceeded) {
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

// slowDown delays one request, so that the driver treats its server as slow.
func slowDown(t testing.TB, proxy *servertest.Proxy, d *postgreslock.Driver, held driver.Claim) {
	t.Helper()
	resume, done := proxy.Hold(), make(chan struct{})
	time.AfterFunc(200*time.Millisecond, func() {
		defer close(done)
		resume()
	})
	renews(t, d, held)
	<-done // the next Hold must not overlap with this one
}

// fillPool opens all connections of a pool.
func fillPool(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	for range pool.Config().MaxConns {
		c, err := pool.Acquire(ctx)
		noError(t, err)
		defer c.Release()
	}
}
