package uses_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// The test binary is also the second process of some tests: see process_kit_test.go.
func TestMain(m *testing.M) {
	if verb := os.Getenv(childVerb); verb != "" {
		fmt.Fprintln(os.Stderr, runChild(verb))
		os.Exit(1)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // the tests mostly wait
		panic(err)
	}
	code := m.Run()
	redisShared.Stop()
	postgresShared.Stop()
	sqliteShared.Stop()
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

// The servers of all tests, and the folder of the databases of SQLite.
var (
	redisShared    servertest.Shared[*redistest.Server]
	postgresShared servertest.Shared[*pgtest.Server]
	sqliteShared   servertest.Shared[string]
)

func redisServer(t testing.TB) *redistest.Server {
	t.Helper()
	return redisShared.Get(t, func(tb servertest.TB) *redistest.Server { return redistest.Start(tb) })
}

func postgresServer(t testing.TB) *pgtest.Server {
	t.Helper()
	return postgresShared.Get(t, func(tb servertest.TB) *pgtest.Server {
		s := pgtest.Start(tb)
		s.Do("postgres", "CREATE DATABASE locks")
		return s
	})
}

func sqliteFolder(t testing.TB) string {
	t.Helper()
	return sqliteShared.Get(t, servertest.TB.TempDir)
}
