package postgreslock_test

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/postgreslock"
)

// Many clients that lock several names never deadlock, and none of them starves.
func TestACrowdTakesSeveralOfTenNames(t *testing.T) {
	skipIfShort(t, "64 clients")
	server := pgtest.Start(t)
	drivertest.TestAllInACrowd(t, func() driver.Driver { return openDriver(t, server.URL("postgres")+"?pool_max_conns=1") })
}

// A claim waits for its turn at each name, in the order of the names, and only then takes
// a connection. So many claims cannot deadlock, even with a small pool.
func TestACrowdOnSeveralNamesSharesAFewConnections(t *testing.T) {
	skipIfShort(t, "64 clients")
	server := pgtest.Start(t)
	d := openDriver(t, server.URL("postgres")+"?pool_max_conns=2")
	drivertest.TestAllInACrowd(t, func() driver.Driver { return sharedDriver{d} })
}

// A sharedDriver is the driver of several clients. The test closes it.
type sharedDriver struct{ *postgreslock.Driver }

func (sharedDriver) Close() error { return nil }

// The holder keeps its lease, although the places of all waiters are in the same row.
func TestAHolderKeepsItsLeaseInACrowd(t *testing.T) {
	skipIfShort(t, "100 clients")
	server := pgtest.Start(t)
	drivertest.TestHeldInACrowd(t, func() driver.Driver { return openDriver(t, server.URL("postgres")+"?pool_max_conns=1") })
}

// BenchmarkAll compares pawl.All with a single lock.
func BenchmarkAll(b *testing.B) {
	server := durableServer(b)
	drivertest.BenchmarkAll(b, openDriver(b, server.URL("postgres")))
}
