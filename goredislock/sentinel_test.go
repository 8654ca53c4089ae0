package goredislock_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

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
			Open: shared(client),
			OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
				through := *o
				through.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					// a silent Sentinel makes the client look for another master
					if slices.Contains(o.SentinelAddrs, addr) {
						return new(net.Dialer).DialContext(ctx, network, addr)
					}
					return n.Dial(ctx, network, addr)
				}
				return newDriver(t, redis.NewFailoverClient(&through))
			},
			Unit: unit,

			AllAtOnce: true,
		})
	})
	t.Run("AFailOverWhileHeld", func(t *testing.T) {
		d := shared(client)(t)
		defer d.Close()
		failOver(t, d, group)
	})
}

// A lease that was replicated is held on the new master, too, and the next fences are
// greater.
func failOver(t *testing.T, d driver.Driver, group *redistest.SentinelGroup) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := driver.Claim{Name: "job", Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: 5 * time.Minute}
	first, err := d.Acquire(ctx, c)
	noError(t, err)
	group.Replicated()
	group.Master.Kill()
	l := driver.LeaseRef{Name: c.Name, Token: c.Token, TTL: c.TTL}
	for {
		answers, err := d.Renew(ctx, []driver.LeaseRef{l})
		if err == nil {
			err = answers[0]
		}
		if err == nil {
			break
		}
		if !errors.Is(err, driver.ErrUnavailable) {
			t.Fatalf("%v; want it held on the new master", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	next := c
	next.Token = driver.NewToken()
	isRefused(t, d, next)
	if err := d.Release(ctx, l); err != nil {
		t.Error(err)
	}
	if second, err := d.Acquire(ctx, next); err != nil || second.Fence <= first.Fence {
		t.Errorf("fence %d after %d, %v", second.Fence, first.Fence, err)
	}
}
