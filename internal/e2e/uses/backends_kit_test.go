package uses_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/goredislock"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
	_ "github.com/pawl-go/pawl/postgreslock"
	_ "github.com/pawl-go/pawl/redislock"
	_ "github.com/pawl-go/pawl/sqlitelock"
)

var background = context.Background()

// A backend is the place of a test's locks.
type backend struct {
	name string
	kind string                                      // as in handles
	at   func(t testing.TB, db string) string        // the URL of a database, "locks" or "elsewhere"; nil in memory
	open func(t testing.TB, db string) driver.Driver // the driver of one more client
}

var memories = map[string]*memlock.Memory{"locks": memlock.NewMemory(nil), "elsewhere": memlock.NewMemory(nil)}

var backends = []*backend{
	{name: "Memory", kind: "memory", open: func(_ testing.TB, db string) driver.Driver { return memories[db].Driver() }},
	overURL("SQLite", "sqlite", func(t testing.TB, db string) string {
		return "sqlite:" + filepath.ToSlash(filepath.Join(sqliteFolder(t), db))
	}),
	overURL("Redis", "redis", redisURL),
	{name: "GoRedis", kind: "redis", open: func(t testing.TB, db string) driver.Driver {
		o, err := goredis.ParseURL(redisURL(t, db))
		noError(t, err)
		client := goredis.NewClient(o)
		d, err := goredislock.New(client, nil)
		noError(t, err)
		return &owning{engine.Full(d), client}
	}},
	overURL("PostgreSQL", "postgres", func(t testing.TB, db string) string {
		return postgresServer(t).URL(db) + "?pool_max_conns=4" // one test has many clients
	}),
}

func redisURL(t testing.TB, db string) string {
	t.Helper()
	return "redis://" + redisServer(t).Addr + "/" + map[string]string{"locks": "0", "elsewhere": "1"}[db]
}

func overURL(name, kind string, at func(t testing.TB, db string) string) *backend {
	return &backend{name: name, kind: kind, at: at, open: func(t testing.TB, db string) driver.Driver {
		t.Helper()
		ctx, cancel := context.WithTimeout(background, patience)
		defer cancel()
		d, err := driver.Open(ctx, at(t, db))
		noError(t, err)
		return d
	}}
}

// owning is a driver that also closes its client.
type owning struct {
	engine.Driver
	client *goredis.Client
}

func (o *owning) Close() error { return errors.Join(o.Driver.Close(), o.client.Close()) }

// onEach runs a test on each backend, in parallel.
func onEach(t *testing.T, f func(t *testing.T, b *backend)) {
	t.Helper()
	on(t, func(*backend) bool { return true }, f)
}

// onServers is onEach for the backends that other processes can use, too.
func onServers(t *testing.T, f func(t *testing.T, b *backend)) {
	t.Helper()
	on(t, func(b *backend) bool { return b.at != nil }, f)
}

func on(t *testing.T, which func(b *backend) bool, f func(t *testing.T, b *backend)) {
	t.Helper()
	t.Parallel()
	for _, b := range backends {
		if which(b) {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				f(t, b)
			})
		}
	}
}

var names atomic.Int64

// fresh returns a name that no other test has used, and this test not before. The first
// name of a test is the smallest.
func fresh(t testing.TB) string { return fmt.Sprintf("%s#%06d", t.Name(), names.Add(1)) }

// client returns one more client, like another instance's. Without options it is a client
// that loses nothing on a slow machine.
func (b *backend) client(t testing.TB, o *pawl.Options) *pawl.Client {
	t.Helper()
	if o == nil {
		o = steady
	}
	return clientOf(t, b.open(t, "locks"), o)
}

func clientOf(t testing.TB, d driver.Driver, o *pawl.Options) *pawl.Client {
	t.Helper()
	c, err := pawl.New(d, o)
	noError(t, err)
	t.Cleanup(func() {
		if m, ok := d.(*mortal); c.Close() != nil && !(ok && m.dead.Load()) {
			t.Errorf("%v is not closed: %v", c, c.Close())
		}
	})
	return c
}

// patience is the longest time that a test waits for an event that has to come. It is not
// a promise, because a busy machine is slow.
const patience = 60 * time.Second

// steady are the options of a client that lasts. Close waits for a request whose caller
// gave up, for as long as that request may take. So a test takes 10 s longer if it
// cancels a wait before its claim gets an answer.
var steady = &pawl.Options{TTL: 5 * time.Minute, QueueTTL: 20 * time.Second, RequestTimeout: 10 * time.Second, RetryFor: patience}

// brief are the options of a client that will die, or become unhealthy: the others wait
// for its TTL. Requests have more time than a sixth of the TTL, because the machine may
// be slow.
var brief = &pawl.Options{TTL: time.Second, RequestTimeout: 800 * time.Millisecond}

// soon returns a context that ends when the test has waited long enough.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(background, patience)
	t.Cleanup(cancel)
	return ctx
}

// get receives a value that has to come.
func get[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case v = <-c:
	case <-late.C:
		t.Fatalf("it never came: %s", what)
	}
	return v
}

// eventually waits until f is true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came to pass: %s", what)
		}
	}
}

func entry(t testing.TB, c *pawl.Client, name string) pawl.Entry {
	t.Helper()
	e, err := c.Inspect(soon(t), name)
	noError(t, err)
	return e
}

func waiters(t testing.TB, c *pawl.Client, name string, n int) {
	t.Helper()
	eventually(t, "so many wait", func() bool { return len(entry(t, c, name).Waiters) == n })
}

// free waits until a name has no holder and no waiter.
func free(t testing.TB, c *pawl.Client, name string) {
	t.Helper()
	eventually(t, name+" is free", func() bool {
		e := entry(t, c, name)
		return len(e.Holders)+len(e.Waiters) == 0
	})
}

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		noError(t, err)
		return v
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isError(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Fatalf("error is %v, want one that Is %v", err, target)
		}
	}
}
