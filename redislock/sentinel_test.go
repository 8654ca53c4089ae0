package redislock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

func TestAFailOverWhileANameHasAHolderAndAWaiter(t *testing.T) {
	skipIfShort(t, "fail-overs")
	t.Parallel()
	group := redistest.StartSentinelGroup(t)
	group.CheckFailOver(openDriver(t, group.URL()), openDriver(t, group.URL()))
}

// A lease that the replica lacks when the master dies is lost, and the name is granted
// again with a greater fence. The first holder learns that when it renews.
func TestALeaseThatTheReplicaLacksIsLostAndTheNextFenceIsGreater(t *testing.T) {
	skipIfShort(t, "fail-overs")
	t.Parallel()
	group := redistest.StartSentinelGroup(t)
	d, other := openDriver(t, group.URL()), openDriver(t, group.URL())
	redistest.AwaitCaughtUp(t, group.Master, group.Replica)
	group.Replica.Do("REPLICAOF", "127.0.0.1", "1") // until its Sentinels notice, after 3 s
	c := mutex("job")
	c.TTL = 5 * time.Minute
	first := gets(t, d, c)
	group.Master.Kill()

	eventually(t, func() error {
		second, err := other.Acquire(ctx, mutex("job"))
		if err == nil {
			rises(t, first.Fence, second.Fence)
		}
		return err
	})
	eventually(t, func() error {
		err := renewed(d, c)
		if errors.Is(err, driver.ErrNoSuchLease) {
			return nil
		}
		if err == nil {
			t.Fatal("two leases are renewed")
		}
		return err
	})
}
