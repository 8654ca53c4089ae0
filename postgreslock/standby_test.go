package postgreslock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// The driver refuses a demoted server, for changes and for reads, until its promotion.
func TestAServerThatIsDemotedIsRefusedUntilItIsPromoted(t *testing.T) {
	skipIfShort(t, "a fail-over")
	t.Parallel()
	server := pgtest.Start(t)
	d := openDriver(t, server.URL("postgres"))
	c := mutex("job")
	gets(t, d, c)
	server.RestartAsStandby()
	eventually(t, "a claim is refused by a standby", func() bool {
		_, err := d.Acquire(ctx, mutex("other"))
		if isPermanent(err) {
			t.Fatalf("%v; want a temporary error", err)
		}
		return err != nil && strings.Contains(err.Error(), "recovery")
	})
	if e, err := d.Inspect(ctx, "job"); err == nil {
		t.Errorf("Inspect read %+v from a standby", e)
	}
	server.Do("postgres", "SELECT pg_promote()")
	renews(t, d, c)
}

// Of several hosts the driver finds the one that accepts writes, and finds it again after
// that one was down.
func TestOfSeveralHostsThePrimaryIsFoundAgain(t *testing.T) {
	skipIfShort(t, "a fail-over")
	t.Parallel()
	primary, standby := pgtest.Start(t), pgtest.Start(t)
	standby.RestartAsStandby()
	d := openDriver(t, "postgres://postgres@"+primary.Addr+","+standby.Addr+"/postgres")
	c := mutex("job")
	gets(t, d, c)
	primary.Kill()
	if e, err := d.Inspect(ctx, "job"); err == nil {
		t.Errorf("Inspect read %+v without a primary", e)
	}
	if _, err := d.Acquire(ctx, mutex("other")); err == nil || isPermanent(err) {
		t.Errorf("%v; want a temporary error", err)
	}
	primary.Run()
	eventually(t, "the driver renews the lease", func() bool {
		answers, err := d.Renew(ctx, []driver.LeaseRef{lease(c)})
		return err == nil && answers[0] == nil
	})
}

// A commit waits for a synchronous standby that is down. When the caller gives up, the
// server must not commit without the standby, because a failover would lose the commit.
func TestACommitDoesNotSkipASynchronousStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	d, c := openDriver(t, server.URL("postgres")), conn(t, server.URL("postgres"))
	gets(t, d, mutex("before"))
	exec(t, c, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
	isTrue := func(sql string) bool {
		var yes bool
		noError(t, c.QueryRow(ctx, "SELECT "+sql).Scan(&yes))
		return yes
	}
	callerCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan error)
	const commitWaits = "EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')"
	for n, waited := 0, false; !waited; n++ { // a commit before the reload does not wait
		go func() {
			_, err := d.Acquire(callerCtx, mutex(fmt.Sprintf("job %d", n)))
			answered <- err
		}()
		select {
		case <-answered:
		case <-time.After(500 * time.Millisecond):
			waited = true
			eventually(t, "the commit waits for the standby", func() bool { return isTrue(commitWaits) })
			cancel()
			if err := <-answered; !errors.Is(err, context.Canceled) {
				t.Errorf("%v; want context.Canceled", err)
			}
			time.Sleep(300 * time.Millisecond) // a cancel request would arrive by then
			if !isTrue(commitWaits) || isTrue(fmt.Sprintf("EXISTS (SELECT FROM pawl.locks WHERE name = 'job %d')", n)) {
				t.Fatal("the server committed without the standby")
			}
		}
	}
}
