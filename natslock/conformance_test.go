package natslock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/internal/natstest"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	leaktest.SetMaxParallel(24)
	leaktest.Main(leaktest.Then(m, natstest.Stop))
}

// unit is the unit of the suite's times. Even on a busy machine, a server answers several
// requests within one unit.
const unit = 2 * time.Second

func TestConformance(t *testing.T) {
	t.Parallel()
	_, bucket, server := ownBucket(t)
	runConformance(t, server, server.Addr, bucket, unit)
}

func TestConformanceOnACluster(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := natstest.StartCluster(t, 3)
	runConformance(t, nodes[0], fmt.Sprintf("%s,%s,%s", nodes[0].Addr, nodes[1].Addr, nodes[2].Addr), "pawl?replicas=3", 2*unit)
}

// runConformance runs the suite on a server or a cluster. Clients behind the suite's
// network reach only this server.
func runConformance(t *testing.T, server *natstest.Server, addrs, bucket string, unit time.Duration) {
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, "nats://"+addrs+"/"+bucket) },
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return open(t, "nats://"+n.Addr(server.Addr)+"/"+bucket)
		},
		OtherStores: []func(testing.TB) driver.Driver{
			func(t testing.TB) driver.Driver { return open(t, "nats://"+server.Addr+"/other-than-this") },
		},
		Unit:        unit,
		Uncertainty: unit / 4, // because the width of a window is some round trips
	})
}

func TestTwoHundredWaitersAreServedInOrder(t *testing.T) {
	skipIfShort(t, "crowds")
	t.Parallel()
	url := "nats://" + natstest.Start(t, "").Addr
	drivertest.CheckLongQueue(t, openDriver(t, url), openDriver(t, url), 200)
}
