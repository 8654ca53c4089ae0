package mongolock

import (
	"testing"

	"github.com/pawl-go/pawl/drivertest"
)

// BenchmarkBesideHolders measures the cost of a step beside many holders of its name.
func BenchmarkBesideHolders(b *testing.B) {
	server := startServer(b)
	drivertest.BenchmarkHolders(b, open(b, server.databaseURL(server.addr, newDatabase())), nil, 1, 100, 1000)
}

// BenchmarkAll measures pawl.All beside one lock.
func BenchmarkAll(b *testing.B) {
	server := startServer(b)
	drivertest.BenchmarkAll(b, open(b, server.databaseURL(server.addr, newDatabase())))
}
