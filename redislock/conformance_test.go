package redislock_test

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/redislock"
)

func TestMain(m *testing.M) {
	leaktest.SetMaxParallel(24)
	// rueidis waits a second before it asks the Sentinels again, and five seconds before
	// it closes connections to a node that has left its cluster. Closing its client does
	// not stop these goroutines; both end by themselves.
	leaktest.Main(m, "github.com/redis/rueidis.(*call).DelayDo.func1",
		"github.com/redis/rueidis.(*clusterClient)._refresh.func2",
		"github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1")
}

// unit is the unit of the suite's times. Even on a busy machine, a server answers several
// requests within one unit.
const unit = 2 * time.Second

func TestConformance(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, "redis://"+server.Addr) },
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return open(t, "redis://"+n.Addr(server.Addr))
		},
		OtherStores: []func(testing.TB) driver.Driver{
			func(t testing.TB) driver.Driver { return open(t, "redis://"+server.Addr+"/1") },
			func(t testing.TB) driver.Driver { return open(t, "redis://"+server.Addr+"?prefix=other:") },
		},
		Unit: unit,

		AtomicAll: true,
	})
}

func TestConformanceWithoutRESP3(t *testing.T) {
	skipIfShort(t, "a second topology")
	t.Parallel()
	server := redistest.Start(t)
	runShared(t, rueidis.ClientOption{InitAddress: []string{server.Addr}, AlwaysRESP2: true, DisableCache: true}, true)
}

func TestConformanceOnACluster(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	runShared(t, rueidis.ClientOption{InitAddress: []string{nodes[0].Addr, nodes[1].Addr}}, false)
}

func TestConformanceWithSentinel(t *testing.T) {
	skipIfShort(t, "fail-overs")
	t.Parallel()
	group := redistest.StartSentinelGroup(t)
	o := rueidis.ClientOption{Sentinel: rueidis.SentinelOption{MasterSet: "main"}}
	for _, s := range group.Sentinels {
		o.InitAddress = append(o.InitAddress, s.Addr)
	}
	runShared(t, o, true)
}

// runShared runs the suite with drivers that share one client, as the parts of a program
// do. Opening a client for each driver would take longer than the tests. With
// oneServer, all names are on one server.
func runShared(t *testing.T, o rueidis.ClientOption, oneServer bool) {
	t.Helper()
	client, err := rueidis.NewClient(o)
	noError(t, err)
	t.Cleanup(client.Close)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return newDriver(t, client) },
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			through := o
			through.DialCtxFn = func(ctx context.Context, addr string, direct *net.Dialer, _ *tls.Config) (net.Conn, error) {
				// if a Sentinel were silent, the client would look for another master
				if o.Sentinel.MasterSet != "" && slices.Contains(o.InitAddress, addr) {
					return direct.DialContext(ctx, "tcp", addr)
				}
				return n.Dial(ctx, "tcp", addr)
			}
			client, err := rueidis.NewClient(through)
			noError(t, err)
			t.Cleanup(client.Close)
			return newDriver(t, client)
		},
		Unit: unit,

		AtomicAll: oneServer,
	})
}

func newDriver(t testing.TB, client rueidis.Client) driver.Driver {
	t.Helper()
	d, err := asDriver(redislock.New(client, nil))
	noError(t, err)
	return d
}

func TestAThousandWaitersAreServedInOrder(t *testing.T) {
	skipIfShort(t, "crowds")
	t.Parallel()
	server := redistest.Start(t)
	drivertest.CheckLongQueue(t, openDriver(t, "redis://"+server.Addr), openDriver(t, "redis://"+server.Addr), 1000)
}

// The clients of a crowd never deadlock, and none of them starves.
func TestACrowdTakesSeveralOfTenNames(t *testing.T) {
	skipIfShort(t, "64 clients")
	server := redistest.Start(t)
	drivertest.TestAllInACrowd(t, func() driver.Driver { return openDriver(t, "redis://"+server.Addr) })
}

// BenchmarkAll measures pawl.All beside one lock.
func BenchmarkAll(b *testing.B) {
	server := redistest.Start(b)
	drivertest.BenchmarkAll(b, openDriver(b, "redis://"+server.Addr))
}
