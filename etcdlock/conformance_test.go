package etcdlock_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conforms(t, etcdtest.Start(t, 1), 2*time.Second)
}

// With three members each client is connected to any of them, and most not to the leader.
func TestConformanceOnThreeMembers(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	t.Parallel()
	conforms(t, etcdtest.Start(t, 3), 3*time.Second)
}

// conforms runs the suite. The clock loses a moment whenever another client takes over,
// and here a hundred of them come and go.
func conforms(t *testing.T, c *etcdtest.Cluster, blur time.Duration) {
	uses(t, c.URL())
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, c.URL()) },
		Elsewhere: []func(testing.TB) driver.Driver{
			func(t testing.TB) driver.Driver { return open(t, c.URL()+"/other") },
		},
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return open(t, "etcd://"+n.Addr(c.Members[0].Addr))
		},
		Unit: 4 * time.Second,
		Blur: blur,
	})
}

func TestTwoHundredWaitersAreServedInOrder(t *testing.T) {
	t.Parallel()
	url := etcdtest.Start(t, 1).URL()
	drivertest.CheckLongQueue(t, start(t, url), start(t, url), 200)
}
