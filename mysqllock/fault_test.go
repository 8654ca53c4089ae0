package mysqllock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/mysqllock"
)

// client opens a client that is closed when the test ends. On a slow machine a server
// takes longer to restart than a lease lasts, and than a request is repeated, by default.
func client(t *testing.T, url string) *pawl.Client {
	t.Helper()
	d, err := concrete(mysqllock.Open(ctx, url))
	if err != nil {
		t.Fatal(err)
	}
	c, err := pawl.New(d, &pawl.Options{TTL: 2 * time.Minute, RetryFor: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// locks locks a name in the background, and sends the lease.
func locks(t *testing.T, c *pawl.Client, name string) <-chan *pawl.Lease {
	got := make(chan *pawl.Lease, 1)
	go func() {
		l, err := c.Mutex(name).Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	return got
}

func arrives(t *testing.T, got <-chan *pawl.Lease) *pawl.Lease {
	t.Helper()
	select {
	case l := <-got:
		if l == nil {
			t.Fatal("it was not granted")
		}
		return l
	case <-time.After(2 * time.Minute):
		t.Fatal("it was not granted in time")
		return nil
	}
}

// A server that is killed while a name is held and waited for keeps both: the lease goes
// on, and the waiter gets the name when it is released.
func TestAServerThatIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t, "--innodb-flush-log-at-trx-commit=1")
	url := "mysql:" + s.DSN(mysqltest.Database)
	one, two := client(t, url), client(t, url)
	held := arrives(t, locks(t, one, "job"))
	got := locks(t, two, "job")
	eventually(t, "somebody waits", func() bool {
		e, err := one.Inspect(ctx, "job")
		return err == nil && len(e.Waiters) == 1
	})
	s.Kill()
	time.Sleep(200 * time.Millisecond)
	s.Run()
	if err := held.Err(); err != nil {
		t.Fatalf("the lease was lost: %v", err)
	}
	// If the request fails, the client goes on trying; a further call would say the same.
	if err := held.Release(ctx); err != nil && !errors.Is(err, driver.ErrUnavailable) {
		t.Fatalf("Release: %v", err)
	}
	if l := arrives(t, got); l.Fence() <= held.Fence() {
		t.Errorf("the fence %d after %d", l.Fence(), held.Fence())
	}
}

// Connections that are killed, all of them again and again, cost nothing but time.
func TestConnectionsThatAreKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: a storm")
	}
	s := mysqltest.Start(t)
	url := "mysql:" + s.DSN(mysqltest.Database)
	root := s.Root(t)
	var clients []*pawl.Client
	for range 4 {
		clients = append(clients, client(t, url))
	}
	began := time.Now()
	ended, end := context.WithTimeout(ctx, time.Minute)
	defer end()
	var all sync.WaitGroup
	all.Go(func() {
		for ended.Err() == nil {
			_, _ = root.ExecContext(ctx, "KILL USER "+mysqltest.User)
			time.Sleep(50 * time.Millisecond)
		}
	})
	var mu sync.Mutex
	turns, inside, last := 0, 0, uint64(0)
	const enough = 10
	for _, c := range clients {
		all.Go(func() {
			for ended.Err() == nil {
				l, err := c.Mutex("job").Lock(ended)
				if err != nil {
					if ended.Err() == nil {
						t.Errorf("Lock: %v", err)
					}
					continue
				}
				mu.Lock()
				if inside++; inside > 1 || l.Fence() <= last {
					t.Errorf("VIOLATION: %d hold it, with the fence %d after %d", inside, l.Fence(), last)
				}
				last = l.Fence()
				if turns++; turns >= enough && time.Since(began) > 3*time.Second {
					end()
				}
				mu.Unlock()
				time.Sleep(2 * time.Millisecond)
				mu.Lock()
				inside--
				mu.Unlock()
				_ = l.Release(ctx) // may fail: it is repeated in the background
			}
		})
	}
	all.Wait()
	if turns < enough {
		t.Errorf("only %d turns in a minute", turns)
	}
}

// If a reply is lost, the repeated call gets the same grant.
func TestAReplyThatIsLost(t *testing.T) {
	s, db, _ := fresh(t)
	road := servertest.StartProxy(t, s.Addr)
	d := start(t, "mysql:"+mysqltest.DSN(road.Addr, name(t, db)))
	for _, statement := range []string{"INSERT INTO `pawl_names`", "job"} { // prepared: sent without its text
		c := mutex("job")
		happened := road.LoseReply(statement)
		if _, err := d.Acquire(ctx, c); !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("%s: %v", statement, err)
		}
		<-happened
		e, err := d.Inspect(ctx, "job")
		if err != nil || len(e.Holders) != 1 {
			t.Fatalf("%s: %+v, %v; want it granted", statement, e, err)
		}
		if g := gets(t, d, c); g.Fence != e.Fence {
			t.Errorf("%s: the fence %d, and then %d", statement, e.Fence, g.Fence)
		}
		releases(t, d, c)
	}
}

// If the caller has used up the pool, calls wait as long as their ctx, and no longer.
func TestAPoolThatIsUsedUp(t *testing.T) {
	_, db, d := fresh(t)
	c := mutex("job")
	gets(t, d, c)
	db.SetMaxOpenConns(1)
	busy, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	err = d.Release(short, lease(c))
	if e, ok := errors.AsType[*driver.Error](err); !errors.Is(err, context.DeadlineExceeded) || !ok || !strings.Contains(e.Hint, "larger pool") {
		t.Errorf("Release: %v", err)
	}
	if err := busy.Close(); err != nil {
		t.Fatal(err)
	}
	releases(t, d, c)
}

// When the server hangs, no call takes longer than its ctx, and the server grants nothing
// to claims that have ended.
func TestAServerThatStandsStill(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: a server that stands still")
	}
	s := mysqltest.Start(t)
	d := start(t, "mysql:"+s.DSN(mysqltest.Database))
	first := mutex("job")
	gets(t, d, first)
	releases(t, d, first)
	s.Pause()
	time.Sleep(100 * time.Millisecond) // until all its threads have stopped
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			began := time.Now()
			if _, err := d.Acquire(short, mutex("job")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Acquire: %v", err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
	all.Wait()
	time.Sleep(200 * time.Millisecond)
	s.Resume()
	time.Sleep(200 * time.Millisecond)
	gets(t, d, mutex("job"))
}

// A process that waits long costs four reads a second, however many of its claims wait
// for however many names.
func TestWaitingCostsFourStatementsASecond(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it waits for 7 s")
	}
	s := mysqltest.Start(t)
	d, waiting := start(t, "mysql:"+s.DSN(mysqltest.Database)), start(t, "mysql:"+s.DSN(mysqltest.Database))
	for i := range 20 {
		gets(t, d, mutex(fmt.Sprintf("job-%d", i)))
		c := queued(fmt.Sprintf("job-%d", i))
		c.QueueTTL = time.Minute
		if _, err := waiting.Acquire(ctx, c); !errors.Is(err, driver.ErrHeld) {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil { // so that only the other is counted
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	root := s.Root(t)
	before := statements(t, root)
	time.Sleep(4 * time.Second)
	if n := statements(t, root) - before - 1; n < 4 || n > 16 {
		t.Errorf("%d statements in 4 s", n)
	} else {
		t.Logf("%d statements in 4 s", n)
	}
}

// In a crowd, the server sends the entry only when that shows something new for the
// process, not whenever another waiter keeps its place.
func TestInACrowdTheEntryIsSentWhenSomethingHappens(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: a crowd")
	}
	s := mysqltest.Start(t)
	url := "mysql:" + s.DSN(mysqltest.Database)
	d, waiting := start(t, url), start(t, url)
	held := mutex("job")
	gets(t, d, held)
	waits := func(d *mysqllock.Driver, c driver.Claim) {
		if _, err := d.Acquire(ctx, c); !errors.Is(err, driver.ErrHeld) {
			t.Fatal(err)
		}
	}
	var ahead []driver.Claim
	for range 60 {
		c := queued("job")
		c.QueueTTL = time.Minute
		waits(d, c)
		ahead = append(ahead, c)
	}
	own := queued("job")
	own.QueueTTL = time.Minute
	granted := make(chan driver.Signal, 100)
	defer waiting.Listen(func(s driver.Signal) { granted <- s })()
	waits(waiting, own)
	_ = d.Close()           // its watch is not measured
	time.Sleep(time.Second) // the other one has polled, and found nothing new
	root := s.Root(t)
	count := func(variable string) (n int) {
		var name string
		if err := root.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE '"+variable+"'").Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	bytes, looks := count("Bytes_sent"), count("Com_select")
	time.Sleep(2 * time.Second)
	if bytes, looks = count("Bytes_sent")-bytes, count("Com_select")-looks; looks == 0 || bytes/looks > 1000 {
		t.Errorf("%d bytes in %d looks", bytes, looks)
	}
	d = start(t, url)
	for _, c := range ahead {
		releases(t, d, c)
	}
	releases(t, d, held)
	select {
	case s := <-granted:
		if s.Kind != driver.SignalGranted || s.Token != own.Token {
			t.Errorf("%+v", s)
		}
	case <-time.After(5 * time.Second):
		t.Error("it was not told of its grant")
	}
}
