package etcdlock_test

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

// The clients of a crowd never deadlock, and none of them starves.
func TestACrowdTakesSeveralOfTenNames(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: 64 clients")
	}
	c := etcdtest.Start(t, 1)
	drivertest.TestAllInACrowd(t, func() driver.Driver { return start(t, "etcd://"+c.Addrs()[0]) })
}

// BenchmarkAll measures pawl.All beside one lock.
func BenchmarkAll(b *testing.B) {
	c := etcdtest.Start(b, 1, "--unsafe-no-fsync=false")
	drivertest.BenchmarkAll(b, start(b, "etcd://"+c.Addrs()[0]))
}
