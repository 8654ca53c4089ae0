package redislock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

func TestASlotThatMovesWhileHeldAndWaitedFor(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	d, other := openDriver(t, "redis://"+nodes[0].Addr), openDriver(t, "redis://"+nodes[1].Addr)
	heard := listen(t, other)
	from, to, slot := redistest.Moving(nodes, "job")
	for round := range 4 {
		c, waiter := mutex("job"), queued("job")
		if round%2 == 1 {
			c = reader("job")
		}
		waiter.QueueTTL = time.Minute
		first := gets(t, d, c)
		waits(t, other, waiter)
		redistest.Move(nodes, slot, from, to, func() { renews(t, d, c) })
		from, to = to, from
		renews(t, d, c)
		hear(t, heard, driver.SignalRetry, driver.Token{}) // it has subscribed at the slot's new node
		releases(t, d, c)
		hear(t, heard, driver.SignalGranted, waiter.Token)
		rises(t, first.Fence, gets(t, other, waiter).Fence)
		releases(t, other, waiter)
	}
}

// While a slot is being moved, Redis refuses a command with several keys of it if some of
// them are missing.
func TestASlotThatIsBeingMovedLocksAndReleases(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	d := openDriver(t, "redis://"+nodes[0].Addr)
	from, to, slot := redistest.Moving(nodes, "job")
	var last uint64
	redistest.Move(nodes, slot, from, to, func() {
		for range 2 {
			c := mutex("job")
			g := gets(t, d, c)
			rises(t, last, g.Fence)
			last = g.Fence
			renews(t, d, c)
			if again := gets(t, d, c); again.Fence != g.Fence {
				t.Errorf("fence %d, and %d before for the same grant", again.Fence, g.Fence)
			}
			releases(t, d, c)
		}
	})
}

// One script can take the names of one slot. While that slot is being moved it cannot,
// because Redis refuses several keys of which some are missing. Then nothing was run, and
// the driver claims the names one by one with Acquire.
func TestSeveralNamesInAClusterAreOneStepInOneSlot(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	d := openDriver(t, "redis://"+nodes[0].Addr)
	together := ofOneSlot(nodes)
	from, to, slot := redistest.Moving(nodes, together[0].Name)
	apart := []driver.Claim{mutex("a"), mutex("b")}
	if grants, err := d.AcquireAll(ctx, together); err != nil || len(grants) != 2 {
		t.Fatalf("AcquireAll = %v, %v; want both of one slot", grants, err)
	}
	for _, c := range together {
		releases(t, d, c)
	}
	unsupported := func(claims []driver.Claim) {
		t.Helper()
		if grants, err := d.AcquireAll(ctx, claims); !errors.Is(err, errors.ErrUnsupported) || grants != nil {
			t.Errorf("AcquireAll = %v, %v; want it to be unsupported", grants, err)
		}
		for _, c := range claims {
			if err := d.Release(ctx, lease(c)); !errors.Is(err, driver.ErrNoSuchLease) {
				t.Errorf("%q is held after that: %v", c.Name, err)
			}
			gets(t, d, c)
			releases(t, d, c)
		}
	}
	unsupported(apart)
	redistest.Move(nodes, slot, from, to, func() { unsupported(together) })
	if grants, err := d.AcquireAll(ctx, together); err != nil || len(grants) != 2 {
		t.Errorf("AcquireAll = %v, %v; want both where the slot is now", grants, err)
	}
}

// ofOneSlot finds two names in one slot: a few hundred names contain some.
func ofOneSlot(nodes []*redistest.Server) (two []driver.Claim) {
	known := map[uint16]string{}
	for i := 0; ; i++ {
		name := fmt.Sprint("job-", i)
		_, slot := redistest.Owner(nodes, name)
		if other, found := known[slot]; found {
			return []driver.Claim{mutex(other), mutex(name)}
		}
		known[slot] = name
	}
}
