// Package fence_test checks fences in databases with real clients, and the tests of
// internal/fencetest.
package fence_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	mysqltest.Stop()
	shared.Stop()
	os.Exit(code)
}

// shared is the PostgreSQL server of all tests.
var (
	shared    servertest.Shared[*pgtest.Server]
	databases int
)

// postgres creates a database for one test, and returns its URL.
func postgres(t *testing.T) string {
	t.Helper()
	server := shared.Get(t, func(tb servertest.TB) *pgtest.Server { return pgtest.Start(tb) })
	databases++
	return server.Database(fmt.Sprint("app", databases))
}
