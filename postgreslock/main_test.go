package postgreslock_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/internal/pgtest"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil { // drivertest lets many subtests wait side by side
		panic(err)
	}
	code := m.Run()
	keeper.end()
	if code == 0 {
		if err := leaktest.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// shared is a server for all tests that do not damage it.
var shared = struct {
	sync.Mutex
	server    *pgtest.Server
	standby   *pgtest.Server // stays in recovery
	databases int
}{}

// fresh makes a database of that server for this test, and returns its URL and its name.
func fresh(t testing.TB) (server *pgtest.Server, url, name string) {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		shared.server = pgtest.Start(keptTB{t})
	}
	name = strings.ToLower(strings.NewReplacer("/", "_").Replace(t.Name()))
	shared.databases++ // a test may run several times
	name = fmt.Sprintf("%s_%d", name[:min(len(name), 50)], shared.databases)
	return shared.server, shared.server.Database(name), name
}

// standby is a server that stays in recovery.
func standby(t testing.TB) *pgtest.Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.standby == nil {
		shared.standby = pgtest.Start(keptTB{t})
		shared.standby.Standby()
	}
	return shared.standby
}

// keptTB is a test whose server outlives it.
type keptTB struct{ testing.TB }

func (keptTB) Cleanup(f func()) { keeper.funcs = append(keeper.funcs, f) }

type keeping struct{ funcs []func() }

var keeper keeping

func (k *keeping) end() {
	for _, v := range slices.Backward(k.funcs) {
		v()
	}
}
