package natslock_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/natslock"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "24"); err != nil { // drivertest lets many subtests wait side by side
		panic(err)
	}
	leaktest.Main(m)
}

// The times of the suite are multiples of unit. Between two of them a busy machine has to
// get some requests done.
const unit = 2 * time.Second

func TestConformance(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	conforms(t, server, server.Addr+"/pawl", unit)
}

func TestConformanceOnACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: whole clusters")
	}
	t.Parallel()
	nodes := natstest.StartCluster(t, 3)
	conforms(t, nodes[0], fmt.Sprintf("%s,%s,%s/pawl?replicas=3", nodes[0].Addr, nodes[1].Addr, nodes[2].Addr), 2*unit)
}

// conforms runs the suite on a server, or on a cluster in which one server is paused at
// times.
func conforms(t *testing.T, one *natstest.Server, where string, unit time.Duration) {
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, "nats://"+where) },
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return open(t, "nats://"+n.Addr(one.Addr)+"/pawl")
		},
		Elsewhere: []func(testing.TB) driver.Driver{
			func(t testing.TB) driver.Driver { return open(t, "nats://"+one.Addr+"/other") },
		},
		Unit: unit,
		Blur: unit / 4, // windows are some round trips wide
	})
}

func open(t testing.TB, url string) *natslock.Driver {
	t.Helper()
	within, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	d, err := natslock.Open(within, url)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTwoHundredWaitersAreServedInOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: crowds")
	}
	t.Parallel()
	url := "nats://" + natstest.Start(t, "").Addr
	drivertest.CheckLongQueue(t, start(t, url), start(t, url), 200)
}
