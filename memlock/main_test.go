package memlock_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/leaktest"
)

// A subtest that sleeps counts as one of the parallel subtests meanwhile. If only as many
// as there are processors could run, the suite would take the sum of their sleeps.
func TestMain(m *testing.M) {
	leaktest.SetMaxParallel(64)
	leaktest.Main(m)
}
