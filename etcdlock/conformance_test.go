package etcdlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

// TestConformance is not parallel, because on a slow machine other tests would delay each
// of its steps.
func TestConformance(t *testing.T) {
	url, _, c := ownPrefix(t)
	uncertainty := 2 * time.Second
	if testing.Short() {
		uncertainty /= 2 // as the suite does with the unit
	}
	runConformance(t, c, url, uncertainty)
}

// Each client is connected to one of three members, and most clients not to the leader.
func TestConformanceOnThreeMembers(t *testing.T) {
	skipIfShort(t, "the suite again, on a cluster")
	t.Parallel()
	c := etcdtest.Start(t, 3)
	runConformance(t, c, c.URL()+"/locks", 3*time.Second)
}

// runConformance runs the suite. The clock loses a moment whenever another client takes
// over the ticks, and the suite opens and closes a hundred clients.
func runConformance(t *testing.T, c *etcdtest.Cluster, url string, uncertainty time.Duration) {
	d := keepClockBusy(t, url)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, url) },
		OtherStores: []func(testing.TB) driver.Driver{
			func(t testing.TB) driver.Driver { return open(t, url+"/other") },
		},
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return open(t, "etcd://"+n.Addr(c.Members[0].Addr)+strings.TrimPrefix(url, c.URL()))
		},
		Unit:        4 * time.Second,
		Uncertainty: uncertainty,
		ClockLag:    d.ClockLag,
		AtomicAll:   true,
		// On a slow machine many clients at once wait some seconds for each answer.
		Patience: 20 * time.Second,
	})
}

func TestTwoHundredWaitersAreServedInOrder(t *testing.T) {
	skipIfShort(t, "it is a crowd")
	t.Parallel()
	url := etcdtest.Start(t, 1).URL()
	drivertest.CheckLongQueue(t, openDriver(t, url), openDriver(t, url), 200)
}
