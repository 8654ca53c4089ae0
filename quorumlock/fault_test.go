package quorumlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
)

// A minority that is down, hangs, is slow, or has a wrong clock delays clients only a
// little.
func TestAFaultyMinorityCostsLittleTime(t *testing.T) {
	const rtt = 10 * time.Millisecond
	for name, disturb := range map[string]func(s *server, l *line){
		"Down":        func(_ *server, l *line) { l.down.Store(true) },
		"Hung":        func(_ *server, l *line) { l.hung.Store(true) },
		"Silent":      func(_ *server, l *line) { l.silent.Store(true) },
		"Slow":        func(_ *server, l *line) { l.requestDelay.Store(int64(time.Second)) },
		"ClockAhead":  func(s *server, _ *line) { s.skew = time.Hour },
		"ClockBehind": func(s *server, _ *line) { s.skew = -time.Hour },
	} {
		for _, n := range []int{3, 5} {
			inBubble(t, name, func(t *testing.T) {
				servers := newCluster(n)
				d, lines := servers.client(t, rtt)
				for i := range (n - 1) / 2 {
					disturb(servers[i], lines[i])
				}
				var last uint64
				for i := range 5 {
					claim := mutex("jobs")
					began := time.Now()
					g := mustAcquire(t, d, claim)
					if g.Fence <= last {
						t.Fatalf("fence %d after %d", g.Fence, last)
					}
					last = g.Fence
					if took := time.Since(began); i > 0 && took > rtt*3/2 {
						t.Errorf("Acquire %d took %v with a round trip of %v", i, took, rtt)
					}
					mustRenew(t, d, claim)
					mustRelease(t, d, claim)
				}
			})
		}
	}
}

// When all nodes agree, an acquire sends one request to each node, and so does a release.
// Each takes no longer than the slowest node.
func TestAGrantTakesOneRoundTripIfAllNodesAgree(t *testing.T) {
	for _, n := range []int{3, 5} {
		bubble.Test(t, func(t *testing.T) {
			servers := newCluster(n)
			servers[0].skew, servers[1].skew = 3*time.Millisecond, -2*time.Millisecond
			d, lines := servers.client(t, 8*time.Millisecond, 12*time.Millisecond, 10*time.Millisecond)
			for range 20 { // even the first acquire needs no second request
				resetCalls(lines)
				claim := mutex("jobs")
				began := time.Now()
				mustAcquire(t, d, claim)
				if took := time.Since(began); took > 18*time.Millisecond {
					t.Errorf("Acquire took %v, the slowest node 12ms", took)
				}
				began = time.Now()
				mustRelease(t, d, claim)
				if took := time.Since(began); took > 18*time.Millisecond {
					t.Errorf("Release took %v, the slowest node 12ms", took)
				}
				time.Sleep(time.Second)
				for i, l := range lines {
					if calls := l.calls.Load(); calls != 2 {
						t.Errorf("node %d got %d requests, want 2", i+1, calls)
					}
				}
			}
		})
	}
}

// Refusals contain nothing about the nodes' clocks. So the next grant still needs only
// one round trip.
func TestRefusalsDoNotReduceTheLeadOfProposedFences(t *testing.T) {
	for name, oneGrants := range map[string]bool{"NoNodeGrants": false, "OneNodeGrants": true} {
		inBubble(t, name, func(t *testing.T) {
			servers := newCluster(3)
			for i := range servers {
				servers[i].skew = time.Duration(i) * 30 * time.Millisecond
			}
			one, _ := servers.client(t, time.Millisecond)
			two, lines := servers.client(t, time.Millisecond)
			holder := mutex("jobs")
			mustAcquire(t, one, holder)
			if oneGrants {
				servers[0].forgetClaim(t, holder)
			}
			for range 1000 {
				wantHeld(t, two, mutex("jobs"))
			}
			mustRelease(t, one, holder)
			time.Sleep(time.Second)
			resetCalls(lines)
			mustAcquire(t, two, mutex("jobs"))
			for i, l := range lines {
				if n := l.calls.Load(); n != 1 {
					t.Errorf("node %d got %d requests, want 1", i+1, n)
				}
			}
		})
	}
}

// Without a majority nothing is granted, neither to tries nor to claims that queue. The
// error contains the nodes that failed. They keep nothing once they are back, although
// nodes that were stopped then handle requests of callers that have given up.
func TestAMajorityThatIsDownGrantsNothing(t *testing.T) {
	for name, disturb := range map[string]func(l *line, on bool){
		"Down":   func(l *line, on bool) { l.down.Store(on) },
		"Hung":   func(l *line, on bool) { l.hung.Store(on) },
		"Silent": func(l *line, on bool) { l.silent.Store(on) },
		"Stopped": func(l *line, on bool) {
			if on {
				l.stop()
			} else {
				l.resume()
			}
		},
	} {
		for _, n := range []int{3, 5} {
			inBubble(t, name, func(t *testing.T) {
				servers := newCluster(n)
				d, lines := servers.client(t, time.Millisecond)
				for _, l := range lines[n/2:] {
					disturb(l, true)
				}
				for i := range 4 {
					claim := mutex("jobs")
					if i%2 == 0 {
						claim = queued(claim)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					began := time.Now()
					_, err := d.Acquire(ctx, claim)
					cancel()
					if took := time.Since(began); took > 2*time.Second {
						t.Errorf("Acquire took %v with a deadline of 1s", took)
					}
					unavailable, text := errors.Is(err, driver.ErrUnavailable), fmt.Sprint(err)
					if !unavailable && !errors.Is(err, context.DeadlineExceeded) {
						t.Fatalf("Acquire: %v; want ErrUnavailable", err)
					}
					if unavailable && (name == "Down" && !errors.Is(err, errDown) || !strings.Contains(text, "node 3")) {
						t.Errorf("Acquire: %v; want the causes and the nodes", err)
					}
					if unavailable && (strings.Count(text, "pawl: ") != 1 || strings.Contains(text, "\n")) {
						t.Errorf("Acquire: %q; want one line, and pawl once", text)
					}
					if claim.Queue { // a waiter that gives up calls Release
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						if err := d.Release(ctx, lease(claim)); err == nil {
							t.Error("a majority answered Release")
						}
						cancel()
					}
				}
				for _, l := range lines[n/2:] {
					disturb(l, false)
				}
				time.Sleep(10 * time.Second) // less than the TTL
				servers.wantNothingKept(t, "jobs")
				mustAcquire(t, d, mutex("jobs"))
			})
		}
	}
}

// The driver releases the grants of a try that only a minority grants.
func TestAPartialGrantIsReleased(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		first, _ := servers.client(t, time.Millisecond)
		claim := mutex("jobs")
		mustAcquire(t, first, claim)
		if err := servers[2].memory.Driver().Release(t.Context(), lease(claim)); err != nil { // that node forgets it
			t.Fatal(err)
		}
		second, lines := servers.client(t, time.Millisecond)
		lines[2].answerDelay.Store(int64(200 * time.Millisecond)) // and answers late
		_, err := second.Acquire(t.Context(), mutex("jobs"))
		if held, ok := errors.AsType[*driver.HeldError](err); !ok || held.Holders != 1 {
			t.Fatalf("Acquire: %v; want ErrHeld", err)
		}
		time.Sleep(time.Second)
		if holders, waiters := servers.countPerServer(t, "jobs"); !slices.Equal(holders, []int{1, 1, 0}) || sum(waiters) != 0 {
			t.Errorf("holders on the nodes: %d; waiters: %d", holders, waiters)
		}
		mustRelease(t, first, claim) // on two of three nodes
	})
}

// A release does not overtake its acquire on a slow node, but waits for it.
func TestAReleaseComesAfterItsAcquireOnEveryNode(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		d, lines := servers.client(t, time.Millisecond)
		for range 10 {
			claim := queued(mutex("jobs"))
			lines[2].requestDelay.Store(int64(500 * time.Millisecond))
			mustAcquire(t, d, claim)
			lines[2].requestDelay.Store(0)
			mustRelease(t, d, claim)
		}
		time.Sleep(5 * time.Second)
		servers.wantNothingKept(t, "jobs")
	})
}

// The fence rises although each majority shares only one node with the last one, and
// their clocks are minutes apart.
func TestFencesRiseAcrossMajorities(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		servers[0].skew, servers[2].skew = time.Minute, -time.Minute
		d, lines := servers.client(t, time.Millisecond)
		var last uint64
		for i := range 30 {
			missing := lines[i%3]
			missing.down.Store(true)
			claim := mutex("jobs")
			if i%2 == 0 {
				claim.Fences = 50
			}
			g := mustAcquire(t, d, claim)
			if g.Fence <= last {
				t.Fatalf("fence %d after %d, without node %d", g.Fence, last, i%3+1)
			}
			last = g.Fence + uint64(g.Fences) - 1
			mustRelease(t, d, claim)
			missing.down.Store(false)
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// After a node has lost all its data, fences still rise, and the lock still has one
// holder.
func TestFencesRiseAfterANodeLosesItsData(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		var last uint64
		for i := range 9 {
			d, _ := servers.client(t, time.Millisecond)
			claim := mutex("jobs")
			g := mustAcquire(t, d, claim)
			if g.Fence <= last {
				t.Fatalf("fence %d after %d", g.Fence, last)
			}
			last = g.Fence
			servers[i%3].wipe()
			again, _ := servers.client(t, time.Millisecond)
			mustRenew(t, again, claim)
			wantHeld(t, again, mutex("jobs"))
			mustRelease(t, again, claim)
		}
	})
}

// When the answer to an acquire is lost, a repeat returns the same grant.
func TestARepeatedClaimGetsTheGrantWhoseAnswerWasLost(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		d, lines := servers.client(t, time.Millisecond)
		claim := queued(mutex("jobs"))
		lines[0].silent.Store(true)
		lines[1].silent.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if g, err := d.Acquire(ctx, claim); err == nil {
			t.Fatalf("Acquire = %+v", g)
		}
		lines[0].silent.Store(false)
		lines[1].silent.Store(false)
		g := mustAcquire(t, d, claim)
		if holders, waiters := servers.countPerServer(t, "jobs"); !slices.Equal(holders, []int{1, 1, 1}) || sum(waiters) != 0 {
			t.Errorf("holders on the nodes: %d; waiters: %d", holders, waiters)
		}
		if again := mustAcquire(t, d, claim); again.Fence != g.Fence {
			t.Errorf("fences %d, then %d for one claim", g.Fence, again.Fence)
		}
		mustRelease(t, d, claim)
	})
}

// Renewals and releases need a majority of all nodes, not of the nodes that granted.
func TestRenewCountsAMajorityOfAllNodes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(5)
		d, lines := servers.client(t, time.Millisecond)
		setDown(true, lines[3], lines[4])
		claim := mutex("jobs")
		mustAcquire(t, d, claim)
		noError(t, servers[0].memory.Driver().Release(t.Context(), lease(claim)))
		answers, err := d.Renew(t.Context(), []driver.LeaseRef{lease(claim)})
		if err != nil || !errors.Is(answers[0], driver.ErrUnavailable) {
			t.Errorf("Renew on 2 of the 3 that granted: %v, %v; want ErrUnavailable", answers, err)
		}
		setDown(false, lines[3], lines[4])
		answers, err = d.Renew(t.Context(), []driver.LeaseRef{lease(claim)})
		if err != nil || !errors.Is(answers[0], driver.ErrNoSuchLease) {
			t.Errorf("Renew on 2 of 5: %v, %v; want ErrNoSuchLease", answers, err)
		}
		if err := d.Release(t.Context(), lease(claim)); !errors.Is(err, driver.ErrNoSuchLease) {
			t.Errorf("Release on 2 of 5: %v; want ErrNoSuchLease", err)
		}
		servers.wantNothingKept(t, "jobs")
	})
}

// Nodes that missed a renewal return the old TTL.
func TestAHolderHasTheTTLOfAMajority(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d, lines := newCluster(5).client(t, time.Millisecond)
		claim := mutex("jobs")
		mustAcquire(t, d, claim)
		for _, ttl := range []time.Duration{4 * claim.TTL, claim.TTL / 2} {
			setDown(true, lines[3], lines[4])
			answers, err := d.Renew(t.Context(), []driver.LeaseRef{{Name: claim.Name, Token: claim.Token, TTL: ttl}})
			if err != nil || answers[0] != nil {
				t.Fatalf("Renew: %v, %v", answers, err)
			}
			setDown(false, lines[3], lines[4])
			e, err := d.Inspect(t.Context(), claim.Name)
			if err != nil || len(e.Holders) != 1 || e.Holders[0].TTL != ttl {
				t.Errorf("Inspect: %+v, %v; want one holder with the TTL %v", e, err, ttl)
			}
		}
		mustRelease(t, d, claim)
	})
}

// Of four nodes, a majority is three. So two nodes that lack the lease prove its loss,
// however slow the others are.
func TestHalfOfTheNodesSufficeToReportALoss(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d, lines := newCluster(4).client(t, time.Millisecond)
		lines[2].requestDelay.Store(int64(time.Second))
		lines[3].requestDelay.Store(int64(time.Second))
		answers, err := d.Renew(t.Context(), []driver.LeaseRef{lease(mutex("jobs"))})
		if err != nil || !errors.Is(answers[0], driver.ErrNoSuchLease) {
			t.Errorf("Renew: %v, %v; want ErrNoSuchLease", answers, err)
		}
	})
}

// Break takes the fence that Inspect shows, although a node has another fence for the
// lease.
func TestBreakAcceptsTheFenceThatInspectShows(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		servers := newCluster(3)
		servers[0].skew = time.Hour // it grants a different fence
		d, _ := servers.client(t, time.Millisecond)
		claim := mutex("jobs")
		claim.Fences = 10
		g := mustAcquire(t, d, claim)
		e, err := d.Inspect(t.Context(), "jobs")
		if err != nil || len(e.Holders) != 1 || e.Holders[0].Fence != g.Fence || e.Holders[0].Owner.Client != "" {
			t.Fatalf("Entry = %+v, %v; want the fence %d", e, err, g.Fence)
		}
		if err := d.Break(t.Context(), "jobs", g.Fence+uint64(g.Fences), 0, driver.Owner{}); !errors.Is(err, driver.ErrNoSuchLease) {
			t.Errorf("Break of another fence: %v; want ErrNoSuchLease", err)
		}
		noError(t, d.Break(t.Context(), "jobs", g.Fence+9, 5*time.Second, driver.Owner{Client: "op"}))
		servers.wantNothingKept(t, "jobs")
		answers, err := d.Renew(t.Context(), []driver.LeaseRef{lease(claim)})
		if broken, ok := errors.AsType[*driver.BrokenError](answers[0]); err != nil || !ok || broken.By.Client != "op" || broken.ClosedFor < 4*time.Second {
			t.Errorf("Renew: %v, %v", answers, err)
		}
	})
}
