package uses_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/redistest"
)

// The test binary is also the second process of some tests: see process_kit_test.go.
func TestMain(m *testing.M) {
	if verb := os.Getenv(childVerb); verb != "" {
		fmt.Fprintln(os.Stderr, child(verb))
		os.Exit(1)
	}
	flag.Parse()
	if os.Getenv(ticksVariable) == "" { // the tests mostly wait
		if err := flag.Set("test.parallel", "16"); err != nil {
			panic(err)
		}
	}
	redis.SetLogger(quiet{})
	code := m.Run()
	for _, end := range slices.Backward(servers.ends) {
		end()
	}
	if code == 0 {
		// rueidis does not notice that its client was closed; its waiting goroutine ends
		// by itself.
		if err := leaktest.Find("github.com/redis/rueidis.(*call).DelayDo.func1"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// quiet drops the log of go-redis.
type quiet struct{}

// Printf implements the logger of go-redis.
func (quiet) Printf(context.Context, string, ...any) {}

// servers has one server of each kind for all tests. The first test that needs one starts
// it.
var servers struct {
	sync.Mutex
	redis    *redistest.Server
	postgres *pgtest.Server
	sqlite   string // the folder of the databases
	ends     []func()
}

// kept is a test whose server runs after the test has ended.
type kept struct{ testing.TB }

func (kept) Cleanup(f func()) { servers.ends = append(servers.ends, f) }

func (k kept) TempDir() string {
	dir, err := os.MkdirTemp("", "pawl-uses-")
	if err != nil {
		k.Fatalf("%v", err)
	}
	k.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func redisServer(t testing.TB) *redistest.Server {
	t.Helper()
	servers.Lock()
	defer servers.Unlock()
	if servers.redis == nil {
		servers.redis = redistest.Start(kept{t})
	}
	return servers.redis
}

func postgresServer(t testing.TB) *pgtest.Server {
	t.Helper()
	servers.Lock()
	defer servers.Unlock()
	if servers.postgres == nil {
		servers.postgres = pgtest.Start(kept{t})
		servers.postgres.Do("postgres", "CREATE DATABASE locks")
		servers.postgres.Do("postgres", "CREATE DATABASE elsewhere")
	}
	return servers.postgres
}

func sqliteFolder(t testing.TB) string {
	t.Helper()
	servers.Lock()
	defer servers.Unlock()
	if servers.sqlite == "" {
		servers.sqlite = kept{t}.TempDir()
	}
	return servers.sqlite
}
