package goredislock_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/goredislock"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// Short names for the helpers of all tests.
var noError, skipIfShort = basictest.NoError, basictest.SkipIfShort

var asDriver = servertest.As[*redisscript.Driver] // converts the driver of New to its concrete type

func TestMain(m *testing.M) {
	leaktest.SetMaxParallel(24)
	redis.SetLogger(silentLogger{})
	leaktest.Main(m)
}

// silentLogger discards what go-redis prints about each Sentinel that it asks.
type silentLogger struct{}

// Printf implements the logger of go-redis.
func (silentLogger) Printf(context.Context, string, ...any) {}

// owningDriver is a driver that closes its client.
type owningDriver struct {
	*redisscript.Driver
	client    redis.UniversalClient
	closeOnce sync.Once
	closeErr  error
}

func (o *owningDriver) Close() error {
	o.closeOnce.Do(func() { o.closeErr = errors.Join(o.Driver.Close(), o.client.Close()) })
	return o.closeErr
}

func newDriver(t testing.TB, client redis.UniversalClient) driver.Driver {
	t.Helper()
	d, err := asDriver(goredislock.New(client, nil))
	noError(t, err)
	return &owningDriver{Driver: d, client: client}
}

// unit is the unit of the suite's times. Even on a busy machine, a server answers several
// requests within one unit.
const unit = 2 * time.Second

func TestConformance(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver {
			return newDriver(t, redis.NewClient(&redis.Options{Addr: server.Addr}))
		},
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return newDriver(t, redis.NewClient(&redis.Options{Addr: n.Addr(server.Addr)}))
		},
		Unit: unit,

		AtomicAll: true,
	})
}

func TestConformanceOnACluster(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr}})
	t.Cleanup(func() { _ = client.Close() })
	drivertest.Run(t, drivertest.Harness{
		Open: openShared(client),
		OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
			return newDriver(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr}, Dialer: n.Dial}))
		},
		Unit: unit,
	})
}

// openShared opens drivers that share one client, as the parts of a program do. Opening a
// client for each driver would take longer than the tests.
func openShared(client redis.UniversalClient) func(testing.TB) driver.Driver {
	return func(t testing.TB) driver.Driver {
		t.Helper()
		d, err := asDriver(goredislock.New(client, nil))
		noError(t, err)
		return d
	}
}

func TestInvalidClientsAndOptionsAreRefused(t *testing.T) {
	ring, single := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}}), redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer ring.Close()
	defer single.Close()
	for client, options := range map[redis.UniversalClient]*goredislock.Options{ring: nil, nil: nil, single: {WaitReplicas: -1}} {
		if _, err := goredislock.New(client, options); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%v; want ErrInvalid", err)
		}
	}
}

func TestTheErrorOfAnExhaustedPoolHasAHint(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr, PoolSize: 1, PoolTimeout: time.Millisecond})
	d := newDriver(t, client)
	defer d.Close()
	conn := client.Conn() // the program uses the only connection
	defer conn.Close()
	noError(t, conn.Ping(t.Context()).Err())
	_, err := d.Inspect(t.Context(), "job")
	redistest.WantServerError(t, err, false, "PoolSize")
}

func TestWithSentinel(t *testing.T) {
	skipIfShort(t, "fail-overs")
	t.Parallel()
	group := redistest.StartSentinelGroup(t)
	o := &redis.FailoverOptions{MasterName: "main"}
	for _, s := range group.Sentinels {
		o.SentinelAddrs = append(o.SentinelAddrs, s.Addr)
	}
	client := redis.NewFailoverClient(o)
	defer client.Close()
	t.Run("Conformance", func(t *testing.T) {
		drivertest.Run(t, drivertest.Harness{
			Open: openShared(client),
			OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
				through := *o
				through.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					// if a Sentinel were silent, the client would look for another master
					if slices.Contains(o.SentinelAddrs, addr) {
						return new(net.Dialer).DialContext(ctx, network, addr)
					}
					return n.Dial(ctx, network, addr)
				}
				return newDriver(t, redis.NewFailoverClient(&through))
			},
			Unit: unit,

			AtomicAll: true,
		})
	})
	t.Run("AFailOverWhileHeld", func(t *testing.T) {
		d, other := openShared(client)(t), openShared(client)(t)
		defer other.Close()
		defer d.Close()
		group.CheckFailOver(d, other)
	})
}
