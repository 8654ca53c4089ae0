package goredislock_test

import (
	"context"
	"net"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/redistest"
)

func TestWithSentinel(t *testing.T) {
	nightly(t, "fail-overs")
	t.Parallel()
	group := redistest.StartGroup(t)
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
