package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/redislock"
)

func TestABadDayIsATypedErrorAndEndsWell(t *testing.T) {
	nightly(t, "bad days")
	for _, day := range redistest.BadDays {
		t.Run(day.Name, func(t *testing.T) {
			t.Parallel()
			server := day.Start(t)
			url := "redis://" + day.UserInfo() + server.Addr
			day.Check(t, openDriver(t, url), server, func(ctx context.Context) error {
				late, err := concrete(redislock.Open(ctx, url))
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

func TestAClusterThatIsDownIsATypedErrorAndEndsWell(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	server, day := redistest.StartOneNode(t), redistest.ClusterDown
	day.Check(t, openDriver(t, "redis://"+server.Addr), server, nil)
}

// The master of a name dies without a replica: its names are unavailable, and soon all
// names are. When it is back without its data, the holder learns that it lost its lease,
// and the next holder gets a greater fence.
func TestAMasterOfAClusterDiesAndComesBack(t *testing.T) {
	nightly(t, "whole clusters")
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
	for {
		second, err := d.Acquire(ctx, mutex("job"))
		if err == nil {
			rises(t, first.Fence, second.Fence)
			break
		}
		unavailable(t, err, false, "")
		time.Sleep(20 * time.Millisecond)
	}
	answers, err := d.Renew(ctx, []driver.LeaseRef{lease(c)})
	if err != nil || !errors.Is(answers[0], driver.ErrNoSuchLease) {
		t.Errorf("%v, %v; want ErrNoSuchLease", answers, err)
	}
}
