package mysqllock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// After the server was killed and restarted, the holder keeps its lease, and the waiter
// gets the name after the release.
func TestAServerThatIsKilledAndRestarted(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t, "--innodb-flush-log-at-trx-commit=1")
	url := "mysql:" + s.DSN(mysqltest.Database)
	servertest.RidesThrough(t, openDriver(t, url), openDriver(t, url), func() {
		s.Kill()
		time.Sleep(200 * time.Millisecond)
		s.Run()
	})
}

// No lock is lost while all connections are killed again and again.
func TestConnectionsThatAreKilled(t *testing.T) {
	skipIfShort(t, "it runs for long")
	s := mysqltest.Start(t)
	url := "mysql:" + s.DSN(mysqltest.Database)
	root := s.Root(t)
	servertest.Storm(t, []driver.Driver{openDriver(t, url), openDriver(t, url), openDriver(t, url), openDriver(t, url)}, func() {
		_, _ = root.ExecContext(ctx, "KILL USER "+mysqltest.User)
	})
}

// If a reply is lost, the repeated call gets the same grant.
func TestAReplyThatIsLost(t *testing.T) {
	s, db, _ := freshDatabase(t)
	proxy := servertest.StartProxy(t, s.Addr)
	d := openDriver(t, "mysql:"+mysqltest.DSN(proxy.Addr, databaseOf(t, db)))
	for _, statement := range []string{"INSERT INTO `pawl_names`", "job"} { // an update is prepared: only the name
		c := mutex("job")
		lost := proxy.LoseReply(statement)
		if _, err := d.Acquire(ctx, c); !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("%s: Acquire without a reply: %v; want ErrUnavailable", statement, err)
		}
		<-lost
		e, err := d.Inspect(ctx, "job")
		if err != nil || len(e.Holders) != 1 {
			t.Fatalf("%s: %+v, %v; want a holder", statement, e, err)
		}
		if g := gets(t, d, c); g.Fence != e.Fence {
			t.Errorf("%s: the fence %d, and after the repeated call %d", statement, e.Fence, g.Fence)
		}
		releases(t, d, c)
	}
}

// If the caller has taken all connections of the pool, calls wait until their ctx ends.
func TestAPoolThatIsUsedUp(t *testing.T) {
	_, db, d := freshDatabase(t)
	c := mutex("job")
	gets(t, d, c)
	db.SetMaxOpenConns(1)
	busy, err := db.Conn(ctx)
	noError(t, err)
	shortCtx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	err = d.Release(shortCtx, lease(c))
	if wantDriverError(t, err, false, "larger pool"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Release: %v; want the end of its ctx", err)
	}
	noError(t, busy.Close())
	releases(t, d, c)
}

func TestAServerThatStandsStill(t *testing.T) {
	skipIfShort(t, "a server that stands still")
	s := mysqltest.Start(t)
	url := "mysql:" + s.DSN(mysqltest.Database)
	servertest.StandsStill(t, openDriver(t, url), openDriver(t, url), s.Pause, s.Resume)
}

func TestWaitingCostsFourStatementsASecond(t *testing.T) {
	skipIfShort(t, "it waits for 7 s")
	s := mysqltest.Start(t)
	holder, waiter := openDriver(t, "mysql:"+s.DSN(mysqltest.Database)), openDriver(t, "mysql:"+s.DSN(mysqltest.Database))
	for i := range 20 {
		gets(t, holder, mutex(fmt.Sprint("job-", i)))
		isRefused(t, waiter, queued(fmt.Sprint("job-", i)))
	}
	noError(t, holder.Close()) // the test counts only the statements of waiter
	time.Sleep(3 * time.Second)
	root := s.Root(t)
	before := countStatements(t, root)
	time.Sleep(4 * time.Second)
	if n := countStatements(t, root) - before - 1; n < 4 || n > 16 {
		t.Errorf("%d statements in 4 s, want 4 to 16", n)
	}
}

// The server does not send the entry whenever another waiter renews its place, but only
// when the entry has news for this process.
func TestPollsOfALongQueueReadTheEntryOnlyWithNews(t *testing.T) {
	skipIfShort(t, "60 waiters")
	s := mysqltest.Start(t)
	url := "mysql:" + s.DSN(mysqltest.Database)
	d, waiter := openDriver(t, url), openDriver(t, url)
	held := mutex("job")
	gets(t, d, held)
	var ahead []driver.Claim
	for range 60 {
		c := queued("job")
		isRefused(t, d, c)
		ahead = append(ahead, c)
	}
	last := queued("job")
	signals := listen(t, waiter)
	isRefused(t, waiter, last)
	_ = d.Close()           // the test measures only the polls of waiter
	time.Sleep(time.Second) // waiter polls, and finds no news
	root := s.Root(t)
	bytes, polls := status(t, root, "Bytes_sent"), status(t, root, "Com_select")
	time.Sleep(2 * time.Second)
	if bytes, polls = status(t, root, "Bytes_sent")-bytes, status(t, root, "Com_select")-polls; polls == 0 || bytes/polls > 1000 {
		t.Errorf("%d bytes in %d polls, want at most 1000 bytes in each", bytes, polls)
	}
	d = openDriver(t, url)
	for _, c := range append(ahead, held) {
		releases(t, d, c)
	}
	if took := wantSignal(t, signals, driver.SignalGranted, last.Token); took > 10*time.Second {
		t.Errorf("the waiter got the signal of its grant after %v", took)
	}
}
