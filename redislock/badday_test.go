package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/redislock"
)

func TestRequestsOnABadDayReturnTypedErrorsAndRecover(t *testing.T) {
	skipIfShort(t, "bad days")
	for _, day := range redistest.BadDays {
		t.Run(day.Name, func(t *testing.T) {
			t.Parallel()
			server := day.Start(t)
			url := "redis://" + day.UserInfo() + server.Addr
			day.Check(t, openDriver(t, url), server, func(ctx context.Context) error {
				late, err := asDriver(redislock.Open(ctx, url))
				if err != nil {
					return err
				}
				defer late.Close()
				_, err = late.Acquire(ctx, mutex("late"))
				return err
			})
		})
	}
}

func TestRequestsToAClusterThatIsDownReturnTypedErrorsAndRecover(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	server, day := redistest.StartOneNodeCluster(t), redistest.ClusterDown
	day.Check(t, openDriver(t, "redis://"+server.Addr), server, nil)
}

// The master of a name dies without a replica: its names are unavailable, and soon all
// names are. When it is back without its data, the holder learns that it lost its lease,
// and the next holder gets a greater fence.
func TestAMasterOfAClusterDiesAndComesBack(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	owner, _ := redistest.Owner(nodes, "job")
	d := openDriver(t, "redis://"+nodes[0].Addr+","+nodes[1].Addr)
	c := mutex("job")
	first := gets(t, d, c)
	owner.Kill()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for range 5 {
		_, err := d.Acquire(ctx, mutex("job"))
		unavailable(t, err, false, "")
		unavailable(t, d.Release(ctx, lease(mutex("job"))), false, "")
	}
	owner.Run()
	eventually(t, func() error {
		second, err := d.Acquire(ctx, mutex("job"))
		if err == nil {
			rises(t, first.Fence, second.Fence)
		} else {
			unavailable(t, err, false, "")
		}
		return err
	})
	if err := renewed(d, c); !errors.Is(err, driver.ErrNoSuchLease) {
		t.Errorf("%v; want ErrNoSuchLease", err)
	}
}

// The server ends the connections for requests, or those for signals, between any two
// steps: no lease is lost, and no waiter is forgotten.
func TestConnectionsAreKilledBetweenTheSteps(t *testing.T) {
	skipIfShort(t, "bad days")
	t.Parallel()
	for _, kind := range []string{"normal", "pubsub"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			url := "redis://" + server.Addr
			servertest.Storm(t, []driver.Driver{open(t, url), open(t, url), open(t, url)}, func() { server.Do("CLIENT", "KILL", "TYPE", kind) })
		})
	}
}

// rueidis panics, which ends the process, when it unsubscribes while the server answers
// PING with an error.
func TestADriverIsClosedWhileTheServerRefusesRequests(t *testing.T) {
	skipIfShort(t, "bad days")
	for _, day := range redistest.BadDays {
		if day.Cause != "MISCONF" && day.Cause != "MASTERDOWN" {
			continue
		}
		for protocol, options := range map[string]rueidis.ClientOption{
			"RESP3": {DisableCache: true}, "RESP2": {DisableCache: true, AlwaysRESP2: true},
		} {
			t.Run(day.Name+"/"+protocol, func(t *testing.T) {
				t.Parallel()
				server := day.Start(t)
				options.InitAddress = []string{server.Addr}
				client, err := rueidis.NewClient(options)
				noError(t, err)
				defer client.Close()
				for range 2 {
					d, err := asDriver(redislock.New(client, nil))
					noError(t, err)
					cycle(t, d, "job")
					day.Begin(server)
					if err := d.Close(); err != nil {
						t.Error(err)
					}
					for range 3 {
						client.Do(ctx, client.B().Ping().Build()) // the panic would come with the next answers
					}
					day.End(server)
				}
			})
		}
	}
}
