package fence_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/pgtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	mysqltest.Stop()
	for _, stop := range slices.Backward(shared.stops) {
		stop()
	}
	os.Exit(code)
}

// shared is the PostgreSQL server of all tests.
var shared struct {
	server    *pgtest.Server
	stops     []func()
	databases int
}

// postgres makes a database for one test, and returns its URL.
func postgres(t *testing.T) string {
	t.Helper()
	if shared.server == nil {
		shared.server = pgtest.Start(keptTB{t})
	}
	shared.databases++
	return shared.server.Database(fmt.Sprint("app", shared.databases))
}

// keptTB is a test whose server outlives it.
type keptTB struct{ testing.TB }

func (keptTB) Cleanup(f func()) { shared.stops = append(shared.stops, f) }
