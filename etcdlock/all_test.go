package etcdlock_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

// In a crowd of clients that each lock several names, no client deadlocks or starves.
func TestACrowdTakesSeveralOfTenNames(t *testing.T) {
	skipIfShort(t, "64 clients")
	c := etcdtest.Start(t, 1)
	drivertest.TestAllInACrowd(t, func() driver.Driver { return openDriver(t, "etcd://"+c.Addrs()[0]) })
}

// One value has the lease and the places of 100 waiters. The holder still renews its
// lease.
func TestACrowdCostsNoLease(t *testing.T) {
	skipIfShort(t, "100 clients")
	c := etcdtest.Start(t, 1)
	drivertest.TestHeldInACrowd(t, func() driver.Driver { return openDriver(t, "etcd://"+c.Addrs()[0]) })
}

// BenchmarkAll measures pawl.All beside one lock.
func BenchmarkAll(b *testing.B) {
	c := etcdtest.Start(b, 1, "--unsafe-no-fsync=false")
	drivertest.BenchmarkAll(b, openDriver(b, "etcd://"+c.Addrs()[0]))
}

// etcd refuses a transaction that is too large. ErrUnsupported makes the client lock the
// names one after the other.
func TestAClaimOnManyNamesThatExceedsATransaction(t *testing.T) {
	t.Parallel()
	d := openDriver(t, etcdtest.Start(t, 1, "--max-request-bytes=50000").URL())
	claims := make([]driver.Claim, driver.MaxAll)
	for i := range claims {
		claims[i] = mutex(fmt.Sprint("n", i))
		claims[i].Value = bytes.Repeat([]byte("x"), driver.MaxValue)
	}
	if _, err := d.AcquireAll(ctx, claims); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("AcquireAll: %v; want errors.ErrUnsupported", err)
	}
	gets(t, d, mutex("n0"))
}
