package quorumlock_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/servertest"
)

// renewAndRepair renews a lease, and waits until its repairs have arrived.
func renewAndRepair(t *testing.T, d driver.Driver, c driver.Claim) {
	t.Helper()
	mustRenew(t, d, c)
	time.Sleep(time.Second)
	synctest.Wait()
}

// A claim has not reached one node. After a renewal, another node's clock jumps, or a
// node without data replaces it. No other claim is granted.
func TestALeaseOfAMajorityIsRepairedByItsRenewal(t *testing.T) {
	for name, fault := range map[string]func(s *server, lines ...*line){
		"ItsClockJumps": func(s *server, _ ...*line) { s.skew += time.Hour },
		"ItIsReplaced":  func(s *server, lines ...*line) { s.replace(lines...) },
	} {
		for _, waits := range []bool{false, true} {
			inBubble(t, name, func(t *testing.T) {
				servers := newCluster(3)
				one, oneLines := servers.client(t, time.Millisecond)
				two, twoLines := servers.client(t, time.Millisecond)
				holder, rival := mutex("jobs"), queued(mutex("jobs"))
				oneLines[2].down.Store(true)
				g := mustAcquire(t, one, holder)
				oneLines[2].down.Store(false)
				if waits {
					wantHeld(t, two, rival) // the third node grants it
				}
				for range 3 {
					renewAndRepair(t, one, holder)
					if waits {
						wantHeld(t, two, rival)
						time.Sleep(time.Second)
					}
				}
				if holders, _ := servers.countPerServer(t, "jobs"); !slices.Equal(holders, []int{1, 1, 1}) {
					t.Fatalf("holders on the nodes: %d", holders)
				}
				fault(servers[0], oneLines[0], twoLines[0])
				wantHeld(t, two, rival)
				renewAndRepair(t, one, holder)
				wantHeld(t, two, rival)
				if again := mustAcquire(t, one, holder); again.Fence < g.Fence {
					t.Errorf("the fence fell from %d to %d", g.Fence, again.Fence)
				}
				mustRelease(t, one, holder)
				if next := mustAcquire(t, two, rival); next.Fence <= g.Fence {
					t.Errorf("fence %d after %d", next.Fence, g.Fence)
				}
			})
		}
	}
}

// All nodes restart without their data, one after the other, with renewals between. The
// holder keeps its lease, though another claim waits.
func TestALeaseSurvivesTheRestartOfAllNodes(t *testing.T) {
	for _, n := range []int{3, 5} {
		bubble.Test(t, func(t *testing.T) {
			servers := newCluster(n)
			one, oneLines := servers.client(t, time.Millisecond)
			two, twoLines := servers.client(t, time.Millisecond)
			holder, rival := mutex("jobs"), queued(mutex("jobs"))
			g := mustAcquire(t, one, holder)
			wantHeld(t, two, rival)
			for i := range 2 * n {
				servers[i%n].replace(oneLines[i%n], twoLines[i%n])
				renewAndRepair(t, one, holder)
				wantHeld(t, two, rival)
				time.Sleep(time.Second)
				renewAndRepair(t, one, holder)
			}
			e, err := one.Inspect(t.Context(), "jobs")
			if err != nil || len(e.Holders) != 1 {
				t.Fatalf("Inspect: %+v, %v; want one holder", e, err)
			}
			mustRelease(t, one, holder)
			if next := mustAcquire(t, two, rival); next.Fence <= g.Fence {
				t.Errorf("fence %d after %d", next.Fence, g.Fence)
			}
		})
	}
}

// A majority has forgotten a lease, and its claim waits there behind another holder. The
// lease is lost: a node that removes the waiting claim does not vote for the release.
func TestAPlaceOfALostLeaseIsNoVoteForItsRelease(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		one, _ := servers.client(t, time.Millisecond)
		two, _ := servers.client(t, time.Millisecond)
		holder, rival := mutex("jobs"), queued(mutex("jobs"))
		mustAcquire(t, one, holder)
		wantHeld(t, two, rival)
		servers[1].forgetClaim(t, holder) // this node grants the rival
		renewAndRepair(t, one, holder)
		servers[2].forgetClaim(t, holder)
		mustAcquire(t, two, rival)
		if err := one.Release(t.Context(), lease(holder)); !errors.Is(err, driver.ErrNoSuchLease) {
			t.Errorf("Release: %v; want ErrNoSuchLease", err)
		}
	})
}

// No repair is sent for a lease that all nodes have, nor for one that is broken on a
// node.
func TestOnlyIncompleteLeasesAreRepaired(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		d, lines := servers.client(t, time.Millisecond)
		claim := mutex("jobs")
		g := mustAcquire(t, d, claim)
		for range 10 {
			resetCalls(lines)
			renewAndRepair(t, d, claim)
			for i, l := range lines {
				if n := l.calls.Load(); n != 1 {
					t.Errorf("node %d got %d requests, want 1", i+1, n)
				}
			}
		}
		noError(t, engine.Full(servers[1].memory.Driver()).Break(t.Context(), "jobs", g.Fence, 0, driver.Owner{}))
		renewAndRepair(t, d, claim)
		if holders, _ := servers.countPerServer(t, "jobs"); !slices.Equal(holders, []int{1, 0, 1}) {
			t.Errorf("holders on the nodes: %d", holders)
		}
	})
}

// A repair that is under way when its lease is released leaves nothing, even if it
// arrives late.
func TestARepairThatMeetsTheReleaseLeavesNothing(t *testing.T) {
	for delay := range 40 {
		bubble.Test(t, func(t *testing.T) {
			servers := newCluster(3)
			d, lines := servers.client(t, 10*time.Millisecond)
			claim := mutex("jobs")
			mustAcquire(t, d, claim)
			servers[2].forgetClaim(t, claim)
			arrive := func() {}
			if delay%2 == 0 {
				arrive = lines[2].delayNext("acquire")
			}
			mustRenew(t, d, claim)
			time.Sleep(time.Duration(delay) * time.Millisecond)
			mustRelease(t, d, claim)
			time.Sleep(time.Second)
			arrive()
			time.Sleep(10 * time.Second)
			servers.wantNothingKept(t, "jobs")
		})
	}
}

// Break accepts the holder's fence, even if most nodes were repaired and have another
// one.
func TestBreakEndsARepairedLease(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		d, lines := servers.client(t, time.Millisecond)
		claim := mutex("jobs")
		g := mustAcquire(t, d, claim)
		time.Sleep(time.Second) // so that the repairs cannot get the same fence
		for i := range 2 {
			servers[i].replace(lines[i])
			renewAndRepair(t, d, claim)
			renewAndRepair(t, d, claim)
		}
		noError(t, d.Break(t.Context(), "jobs", g.Fence, 0, driver.Owner{}))
		servers.wantNothingKept(t, "jobs")
	})
}

// The third node has missed a claim. Its repair waits there behind a stray vote, in the
// claim's place, ahead of later claims, whether an answer or a signal granted the claim.
func TestARepairTakesThePlaceOfItsClaim(t *testing.T) {
	for name, answered := range map[string]bool{"OfAnAnswer": true, "OfASignal": false} {
		inBubble(t, name, func(t *testing.T) {
			servers := newCluster(3)
			one, _ := servers.client(t, time.Millisecond)
			two, twoLines := servers.client(t, time.Millisecond)
			three, _ := servers.client(t, time.Millisecond)
			first, claim, stray, later := mutex("jobs"), queued(mutex("jobs")), queued(mutex("jobs")), queued(mutex("jobs"))
			claim.Owner.Client, later.Owner.Client = "claim", "later"
			mustAcquire(t, one, first)
			twoLines[2].down.Store(true)
			wantHeld(t, two, claim)
			time.Sleep(10 * time.Millisecond)
			mustRelease(t, one, first)
			time.Sleep(10 * time.Millisecond)
			if answered {
				mustAcquire(t, two, claim)
			}
			wantHeld(t, three, stray) // the third node grants it
			wantHeld(t, three, later)
			twoLines[2].down.Store(false)
			renewAndRepair(t, two, claim)

			e, err := servers[2].memory.Driver().Inspect(t.Context(), "jobs")
			noError(t, err)
			var waiters []string
			for _, w := range e.Waiters {
				_, client, _ := strings.Cut(w.Owner.Client, ":")
				waiters = append(waiters, client)
			}
			if !slices.Equal(waiters, []string{"claim", "later"}) {
				t.Errorf("the waiters on the third node are %v", waiters)
			}
		})
	}
}

// The clock of the first node is an hour ahead, and determines a lease's fence. The third
// node grants the lease later, with a fence from its own clock, which renewals raise. So
// fences rise although the second node loses its data and the first does not answer.
func TestFencesRiseThoughTheClockOfARepairedNodeIsBehind(t *testing.T) {
	for name, test := range map[string]struct {
		fences   int  // the length of the range
		late     bool // the third node grants after the others; otherwise it misses the claim
		signaled bool // the claim waits, and is granted by a signal
		waits    bool // the repair waits in the third node's queue
		silent   bool // the third node does not get the first request that raises the fence
	}{
		"TheClaimMissedTheNode":        {},
		"TheClaimMissedItAndWasQueued": {signaled: true},
		"TheLeaseHasARange":            {fences: 1000},
		"TheGrantIsLate":               {late: true},
		"TheSignalIsLate":              {late: true, signaled: true},
		"TheRepairWaitsInTheQueue":     {waits: true},
		"TheFirstRaiseDoesNotArrive":   {silent: true},
	} {
		inBubble(t, name, func(t *testing.T) {
			servers := newCluster(3)
			servers[0].skew = time.Hour
			one, oneLines := servers.client(t, time.Millisecond)
			two, twoLines := servers.client(t, time.Millisecond)
			signals := servertest.Listen(t, one)
			earlier, holder, stray := mutex("jobs"), queued(mutex("jobs")), mutex("jobs")
			holder.Fences = test.fences

			g := driver.Grant{Fences: 1}
			oneLines[2].down.Store(!test.late)
			if test.signaled {
				mustAcquire(t, two, earlier)
				wantHeld(t, one, holder)
				twoLines[2].requestDelay.Store(int64(100 * time.Millisecond))
				mustRelease(t, two, earlier)
				g.Fence = (<-signals).Fence
			} else {
				oneLines[2].requestDelay.Store(int64(100 * time.Millisecond))
				g = mustAcquire(t, one, holder)
			}
			time.Sleep(time.Second)
			oneLines[2].down.Store(false)
			oneLines[2].requestDelay.Store(0)
			twoLines[2].requestDelay.Store(0)

			third := servers[2].memory.Driver()
			if test.waits {
				_, err := third.Acquire(context.Background(), stray)
				noError(t, err)
				renewAndRepair(t, one, holder)
				servers[2].forgetClaim(t, stray)
			}
			if test.silent {
				oneLines[2].calls.Store(0)
				// The renewal and the claim arrive, but not the next request.
				servers[2].afterRequest = func() { oneLines[2].down.Store(oneLines[2].calls.Load() == 2) }
				renewAndRepair(t, one, holder)
				oneLines[2].down.Store(false)
			}
			renewAndRepair(t, one, holder)

			servers[1].replace(oneLines[1], twoLines[1])
			mustRelease(t, one, holder)
			twoLines[0].down.Store(true)
			last := g.Fence + uint64(g.Fences) - 1
			if next := mustAcquire(t, two, mutex("jobs")); next.Fence <= last {
				t.Errorf("fence %d after %d", next.Fence, last)
			}
		})
	}
}

// The third node is slow, so its grants come too late to be counted. Usually their fences
// are not lower than those of the other nodes, and no request raises them. Otherwise one
// request raises the fence of each lease, however long earlier renewals take.
func TestALateGrantIsRaisedOnceAtMost(t *testing.T) {
	for name, raises := range map[string]int64{"TheFenceIsNotLower": 0, "TheFenceIsLower": 1} {
		inBubble(t, name, func(t *testing.T) {
			const leases, renewals = 64, 5
			servers := newCluster(3)
			servers[0].skew = time.Duration(raises) * time.Hour
			d, lines := servers.client(t, time.Millisecond, time.Millisecond, time.Second)
			var all []driver.LeaseRef
			for i := range leases {
				m := mutex("job" + strconv.Itoa(i))
				mustAcquire(t, d, m)
				all = append(all, lease(m))
			}
			time.Sleep(3 * time.Second)
			lines[2].calls.Store(0)
			for range renewals {
				answers, err := d.Renew(t.Context(), all)
				noError(t, errors.Join(append(answers, err)...))
				time.Sleep(time.Second)
			}
			time.Sleep(time.Minute)
			if n := lines[2].calls.Load() - renewals; n != raises*leases {
				t.Errorf("%d requests beside the renewals, want %d", n, raises*leases)
			}
		})
	}
}
