package redislock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

func TestASlotMovesWhileItsNameHasAHolderAndAWaiter(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	d, other := openDriver(t, "redis://"+nodes[0].Addr), openDriver(t, "redis://"+nodes[1].Addr)
	signals := listen(t, other)
	from, to, slot := redistest.PlanMove(nodes, "job")
	for round := range 4 {
		c, waiter := mutex("job"), queued("job")
		if round%2 == 1 {
			c = reader("job")
		}
		waiter.QueueTTL = time.Minute
		first := gets(t, d, c)
		waits(t, other, waiter)
		redistest.MoveSlot(nodes, slot, from, to, func() { renews(t, d, c) })
		from, to = to, from
		renews(t, d, c)
		hear(t, signals, driver.SignalRetry, driver.Token{}) // the driver has subscribed on the new node
		releases(t, d, c)
		hear(t, signals, driver.SignalGranted, waiter.Token)
		rises(t, first.Fence, gets(t, other, waiter).Fence)
		releases(t, other, waiter)
	}
}

// While a slot is being moved, Redis refuses a command with several keys of it if some of
// them are missing.
func TestClaimsWhileASlotIsBeingMoved(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	d := openDriver(t, "redis://"+nodes[0].Addr)
	from, to, slot := redistest.PlanMove(nodes, "job")
	var last uint64
	redistest.MoveSlot(nodes, slot, from, to, func() {
		for range 2 {
			c := mutex("job")
			g := gets(t, d, c)
			rises(t, last, g.Fence)
			last = g.Fence
			renews(t, d, c)
			if again := gets(t, d, c); again.Fence != g.Fence {
				t.Errorf("fence %d; want %d as before", again.Fence, g.Fence)
			}
			releases(t, d, c)
		}
	})
}

// One script can claim several names of one slot, but not while the slot is being moved:
// Redis refuses several keys if some are missing. Then AcquireAll claims nothing and
// returns ErrUnsupported, and the names can be claimed one by one.
func TestSeveralNamesInAClusterAreOneStepInOneSlot(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	d := openDriver(t, "redis://"+nodes[0].Addr)
	sameSlot := twoOfOneSlot(nodes)
	from, to, slot := redistest.PlanMove(nodes, sameSlot[0].Name)
	otherSlots := []driver.Claim{mutex("a"), mutex("b")}
	if grants, err := d.AcquireAll(ctx, sameSlot); err != nil || len(grants) != 2 {
		t.Fatalf("AcquireAll = %v, %v; want both names granted", grants, err)
	}
	for _, c := range sameSlot {
		releases(t, d, c)
	}
	unsupported := func(claims []driver.Claim) {
		t.Helper()
		if grants, err := d.AcquireAll(ctx, claims); !errors.Is(err, errors.ErrUnsupported) || grants != nil {
			t.Errorf("AcquireAll = %v, %v; want ErrUnsupported", grants, err)
		}
		for _, c := range claims {
			if err := d.Release(ctx, lease(c)); !errors.Is(err, driver.ErrNoSuchLease) {
				t.Errorf("%q is held after the refusal: %v", c.Name, err)
			}
			gets(t, d, c)
			releases(t, d, c)
		}
	}
	unsupported(otherSlots)
	redistest.MoveSlot(nodes, slot, from, to, func() { unsupported(sameSlot) })
	if grants, err := d.AcquireAll(ctx, sameSlot); err != nil || len(grants) != 2 {
		t.Errorf("AcquireAll = %v, %v; want both granted on the new node", grants, err)
	}
}

// twoOfOneSlot finds two names of one slot among a few hundred.
func twoOfOneSlot(nodes []*redistest.Server) (two []driver.Claim) {
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
