package postgreslock_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	leaktest.SetMaxParallel(12)
	leaktest.Main(leaktest.Then(m, func() { shared.Stop(); recovering.Stop() }))
}

// shared is a server for all tests that do not damage it. recovering is a server that
// stays in recovery. databases counts the databases of shared, for unique names.
var (
	shared, recovering servertest.Shared[*pgtest.Server]
	databases          atomic.Int64
)

// freshDatabase creates a database of shared for this test.
func freshDatabase(t testing.TB) (server *pgtest.Server, url, name string) {
	t.Helper()
	server = shared.Get(t, func(tb servertest.TB) *pgtest.Server { return pgtest.Start(tb) })
	name = strings.ToLower(strings.NewReplacer("/", "_").Replace(t.Name()))
	name = fmt.Sprintf("%s_%d", name[:min(len(name), 50)], databases.Add(1))
	return server, server.Database(name), name
}

// standby returns the server that stays in recovery.
func standby(t testing.TB) *pgtest.Server {
	t.Helper()
	return recovering.Get(t, func(tb servertest.TB) *pgtest.Server {
		s := pgtest.Start(tb)
		s.RestartAsStandby()
		return s
	})
}
