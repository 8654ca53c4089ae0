package quorumlock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/servertest"
)

// Three nodes with three permits each could give each of four claims two votes. The
// quorum still grants only three.
func TestASemaphoreIsCountedAcrossNodes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		d, lines := servers.client(t, time.Millisecond)
		for i := range 3 {
			lines[i].down.Store(true)
			mustAcquire(t, d, permitOf(3))
			lines[i].down.Store(false)
			time.Sleep(100 * time.Millisecond)
		}
		for range 3 {
			wantHeld(t, d, permitOf(3)) // a fourth one
		}
		time.Sleep(time.Second)
		if holders, _ := servers.countPerServer(t, "pool"); !slices.Equal(holders, []int{2, 2, 2}) {
			t.Errorf("holders on the nodes: %d", holders)
		}
	})
}

// The last node grants Y after Z, so Y has a higher fence there. Then another node loses
// Y, and Y keeps its majority by the late vote. Z must still count Y.
func TestAPermitThatGotAVoteLaterIsCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		servers[0].skew = -time.Second
		d, lines := servers.client(t, time.Millisecond)
		x, y, z := permitOf(2), permitOf(2), queued(permitOf(2))
		other, _ := servers.client(t, time.Millisecond)
		signals := servertest.Listen(t, other)
		lines[2].down.Store(true)
		mustAcquire(t, d, x)
		mustAcquire(t, d, y)
		lines[2].down.Store(false)
		wantHeld(t, other, z)        // granted by the node that missed X and Y
		g := mustAcquire(t, d, y)    // now this node grants Y, too
		servers[0].forgetClaim(t, y) // this node grants the permit to Z
		time.Sleep(time.Second)
		_, err := other.Acquire(t.Context(), z)
		mustRenew(t, d, x, y)
		if granted, _ := takeAll(signals); err == nil || len(granted) > 0 {
			t.Fatalf("a third permit of two: %v %+v, beside the fence %d", err, granted, g.Fence)
		}
	})
}

// Two claims for the last permit at once count each other. They are not both granted, and
// seldom both refused.
func TestOneOfTwoGetsTheLastPermit(t *testing.T) {
	neither := 0
	for range 100 {
		bubble.Test(t, func(t *testing.T) {
			servers := newCluster(3)
			first, lines := servers.client(t, time.Millisecond)
			for i := range 2 { // the first node and the last have two free permits
				lines[2*i].down.Store(true)
				mustAcquire(t, first, permitOf(3))
				lines[2*i].down.Store(false)
			}
			answers := make(chan error, 2)
			for range 2 {
				d, lines := servers.client(t, time.Millisecond)
				for _, l := range lines {
					l.jitter.Store(int64(3 * time.Millisecond))
				}
				go func() {
					_, err := d.Acquire(t.Context(), permitOf(3))
					answers <- err
				}()
			}
			one, two := <-answers, <-answers
			switch {
			case one == nil && two == nil:
				t.Fatal("both got the last permit")
			case one != nil && two != nil:
				neither++
			}
		})
	}
	if neither > 10 {
		t.Errorf("in %d of 100 runs neither got the last permit", neither)
	}
}

// A holder that repeats its claim gets its fence again, even if a claim with a larger
// limit was granted beside it meanwhile.
func TestARepeatedPermitIsNotCountedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d, _ := newCluster(3).client(t, time.Millisecond)
		small, large := mutex("pool"), mutex("pool")
		small.Weight, small.Limit = 1, 1
		large.Weight, large.Limit = 2, 3
		g := mustAcquire(t, d, small)
		mustAcquire(t, d, large)
		if again := mustAcquire(t, d, small); again.Fence != g.Fence {
			t.Errorf("the repeat has the fence %d, want %d", again.Fence, g.Fence)
		}
	})
}

// A permit was counted and granted, but its client did not get the answer, and retries.
// By then the permit has lost its majority, and another claim was granted. The retry
// reaches another node, and gets the same fence there. It is counted again, and refused.
func TestAPermitThatLostItsMajorityIsCountedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		servers[2].skew = time.Hour
		one, oneLines := servers.client(t, time.Millisecond)
		two, twoLines := servers.client(t, time.Millisecond)
		three, _ := servers.client(t, time.Millisecond)
		x, y, z := permitOf(2), permitOf(2), queued(permitOf(2))
		z.TTL, z.QueueTTL = 2*time.Second, 2*time.Second
		oneLines[2].down.Store(true)
		mustAcquire(t, one, x)
		twoLines[0].down.Store(true)
		mustAcquire(t, two, z)
		time.Sleep(time.Second)
		twoLines[1].down.Store(true)
		if _, err := two.Acquire(t.Context(), z); !errors.Is(err, driver.ErrUnavailable) {
			// the third node extends it
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond)
		stray := permitOf(2) // on one node, for a while
		mustAcquire(t, servers[0].memory.Driver(), stray)
		mustAcquire(t, three, y)
		servers[0].forgetClaim(t, stray)
		setDown(false, twoLines[0], twoLines[1])
		wantHeld(t, two, z) // a third permit of two
		mustRenew(t, one, x)
		mustRenew(t, three, y)
	})
}

// The TTLs are short, and three round trips take longer than one attempt. Permits are
// granted all the same, though they need a second count, and no claim waits for long.
func TestPermitsOfAShortTTLAreGrantedOverASlowLine(t *testing.T) {
	const clients, rounds, maxDelay = 12, 10, 20 * time.Millisecond // of each direction
	for _, ttl := range []time.Duration{300 * time.Millisecond, 500 * time.Millisecond, time.Second} {
		bubble.Test(t, func(t *testing.T) {
			crowd, all := newCrowd(t, 3, clients, maxDelay)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var mu sync.Mutex
			var longest time.Duration
			var done sync.WaitGroup
			for _, c := range all {
				done.Go(func() {
					for range rounds {
						began := time.Now()
						l, err := c.Semaphore("jobs", 3, pawl.WithTTL(ttl)).Acquire(ctx, 1)
						if err != nil {
							t.Errorf("Acquire: %v", err)
							return
						}
						mu.Lock()
						longest = max(longest, time.Since(began))
						mu.Unlock()
						time.Sleep(5 * time.Millisecond)
						_ = l.Release(t.Context())
					}
				})
			}
			done.Wait()
			t.Logf("TTL %v: the longest wait was %v", ttl, longest)
			if longest > 10*time.Second {
				t.Errorf("TTL %v: the longest wait was %v", ttl, longest)
			}
			crowd.close(all)
		})
	}
}
