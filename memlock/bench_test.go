package memlock_test

import (
	"testing"

	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/memlock"
)

// BenchmarkBesideHolders measures the cost of a step on a name with many holders.
func BenchmarkBesideHolders(b *testing.B) {
	drivertest.BenchmarkHolders(b, memlock.NewMemory(nil).Driver(), nil, 1, 100, 1000, 10_000)
}

// BenchmarkAll measures pawl.All, and one lock for comparison.
func BenchmarkAll(b *testing.B) { drivertest.BenchmarkAll(b, memlock.New(nil)) }
