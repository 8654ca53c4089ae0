package uses_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/servertest"
	_ "github.com/pawl-go/pawl/postgreslock"
	_ "github.com/pawl-go/pawl/redislock"
	_ "github.com/pawl-go/pawl/sqlitelock"
)

// The steps that all tests share.
var noError, isError, nightly, eventually = basictest.NoError, basictest.IsError, basictest.Nightly, basictest.Eventually

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

var background = context.Background()

func nothing(context.Context) error { return nil }

// A backend is the place of a test's locks.
type backend struct {
	name string
	at   func(t testing.TB) string // its URL
}

var backends = []*backend{
	{"SQLite", func(t testing.TB) string {
		return "sqlite:" + filepath.ToSlash(filepath.Join(sqliteFolder(t), "locks"))
	}},
	{"Redis", func(t testing.TB) string { return "redis://" + redisServer(t).Addr }},
	{"PostgreSQL", func(t testing.TB) string { return postgresServer(t).URL("locks") + "?connect_timeout=60" }},
}

// on runs a test on each backend, in parallel.
func on(t *testing.T, f func(t *testing.T, b *backend)) {
	t.Helper()
	t.Parallel()
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			f(t, b)
		})
	}
}

var names atomic.Int64

// fresh returns a name that no other test has used, and this test not before. The first
// name of a test is the smallest.
func fresh(t testing.TB) string { return fmt.Sprintf("%s#%06d", t.Name(), names.Add(1)) }

// client returns one more client, like another instance's. It loses nothing on a slow
// machine.
func (b *backend) client(t testing.TB) *pawl.Client {
	t.Helper()
	c, err := pawl.Open(soon(t), b.at(t), steady)
	noError(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("%v is not closed: %v", c, err)
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

// brief are the options of a client that will die: the others wait for its TTL. Requests
// have more time than a sixth of the TTL, because the machine may be slow.
var brief = &pawl.Options{TTL: time.Second, RequestTimeout: 800 * time.Millisecond}

// soon returns a context that ends when the test has waited long enough.
func soon(t testing.TB) context.Context { return servertest.Within(t, patience) }

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
