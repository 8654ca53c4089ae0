package memlock_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/leaktest"
)

// A subtest that lets time pass holds its place among the parallel ones while it sleeps:
// with as many places as processors, the real time of the whole suite would be the sum of
// theirs.
func TestMain(m *testing.M) {
	leaktest.Parallel(64)
	leaktest.Main(m)
}
