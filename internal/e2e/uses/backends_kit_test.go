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

// Short names for the helpers of all tests.
var noError, isError, skipIfShort, eventually = basictest.NoError, basictest.IsError, basictest.SkipIfShort, basictest.Eventually

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

var background = context.Background()

func nothing(context.Context) error { return nil }

// A backend is the place of a test's locks.
type backend struct {
	name string
	url  func(t testing.TB) string
}

var backends = []*backend{
	{"SQLite", func(t testing.TB) string {
		return "sqlite:" + filepath.ToSlash(filepath.Join(sqliteFolder(t), "locks"))
	}},
	{"Redis", func(t testing.TB) string { return "redis://" + redisServer(t).Addr }},
	{"PostgreSQL", func(t testing.TB) string { return postgresServer(t).URL("locks") + "?connect_timeout=60" }},
}

// onEachBackend runs a test on each backend, in parallel.
func onEachBackend(t *testing.T, f func(t *testing.T, b *backend)) {
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

// freshName returns a lock name that was never used before.
func freshName(t testing.TB) string { return fmt.Sprintf("%s#%06d", t.Name(), names.Add(1)) }

// client opens another client. Its TTL is so long that it loses no lease on a slow
// machine.
func (b *backend) client(t testing.TB) *pawl.Client {
	t.Helper()
	c, err := pawl.Open(within(t), b.url(t), longTTL)
	noError(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing %v: %v", c, err)
		}
	})
	return c
}

// maxWait is the longest time that a test waits for an event.
const maxWait = 60 * time.Second

// longTTL are the options of a client that keeps its leases. Close waits until abandoned
// requests end or time out. So a test takes 10 s longer if it cancels a wait before its
// claim gets an answer.
var longTTL = &pawl.Options{TTL: 5 * time.Minute, QueueTTL: 20 * time.Second, RequestTimeout: 10 * time.Second, RetryFor: maxWait}

// shortTTL are the options of a client that the test kills: other clients wait for its
// TTL. Its requests have more time than the default, a sixth of the TTL, because the
// machine may be slow.
var shortTTL = &pawl.Options{TTL: time.Second, RequestTimeout: 800 * time.Millisecond}

// within returns a context that ends after maxWait.
func within(t testing.TB) context.Context { return servertest.Within(t, maxWait) }

// receive receives a value, and fails the test after maxWait.
func receive[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	late := time.NewTimer(maxWait)
	defer late.Stop()
	select {
	case v = <-c:
	case <-late.C:
		t.Fatalf("nothing was received in %v: %s", maxWait, what)
	}
	return v
}

func entry(t testing.TB, c *pawl.Client, name string) pawl.Entry {
	t.Helper()
	e, err := c.Inspect(within(t), name)
	noError(t, err)
	return e
}

func waitForWaiters(t testing.TB, c *pawl.Client, name string, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d clients wait", n), func() bool { return len(entry(t, c, name).Waiters) == n })
}

// waitUntilFree waits until a name has neither holder nor waiter.
func waitUntilFree(t testing.TB, c *pawl.Client, name string) {
	t.Helper()
	eventually(t, name+" is free", func() bool {
		e := entry(t, c, name)
		return len(e.Holders)+len(e.Waiters) == 0
	})
}
