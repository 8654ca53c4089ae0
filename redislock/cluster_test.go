package redislock_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

func TestASlotThatMovesWhileHeldAndWaitedFor(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	d, other := start(t, "redis://"+nodes[0].Addr), start(t, "redis://"+nodes[1].Addr)
	heard := listen(t, other)
	from, slot := redistest.Owner(nodes, "job")
	to := nodes[0]
	if from == to {
		to = nodes[1]
	}
	for round := range 4 {
		c, waiter := mutex("job"), queued("job")
		if round%2 == 1 {
			c = reader("job")
		}
		waiter.QueueTTL = time.Minute
		first := gets(t, d, c)
		if _, err := other.Acquire(ctx, waiter); err == nil {
			t.Fatal("granted twice")
		}
		redistest.Move(nodes, slot, from, to, func() { renews(t, d, c) })
		from, to = to, from
		renews(t, d, c)
		hear(t, heard, driver.SignalLook, driver.Token{}) // it listens where the slot is now
		releases(t, d, c)
		took := hear(t, heard, driver.SignalGranted, waiter.Token)
		t.Logf("told after %v", took)
		if second := gets(t, other, waiter); second.Fence <= first.Fence {
			t.Errorf("fence %d after %d", second.Fence, first.Fence)
		}
		releases(t, other, waiter)
	}
}

// While a slot is being moved Redis refuses what names several of its keys, if some of
// them are missing.
func TestASlotThatIsBeingMovedLocksAndReleases(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	d := start(t, "redis://"+nodes[0].Addr)
	from, slot := redistest.Owner(nodes, "job")
	to := nodes[0]
	if from == to {
		to = nodes[1]
	}
	var last uint64
	redistest.Move(nodes, slot, from, to, func() {
		for range 2 {
			c := mutex("job")
			g := gets(t, d, c)
			if g.Fence <= last {
				t.Errorf("fence %d after %d", g.Fence, last)
			}
			last = g.Fence
			renews(t, d, c)
			if again := gets(t, d, c); again.Fence != g.Fence {
				t.Errorf("fence %d, and %d before for the same grant", again.Fence, g.Fence)
			}
			releases(t, d, c)
		}
	})
}
