package sqlitelock

import (
	"os"
	"testing"

	"github.com/pawl-go/pawl/internal/leaktest"
)

// Tests also start the test binary as another process, see process_kit_test.go.
func TestMain(m *testing.M) {
	if verb := os.Getenv(childVerb); verb != "" {
		runChild(verb)
		os.Exit(0)
	}
	leaktest.SetMaxParallel(64)
	leaktest.Main(m)
}
