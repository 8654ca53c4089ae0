package quorumlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

// In any order of claims, every client makes progress, none starves, and only one holds
// the name. No claim waits for more than four turns of each other client. With one common
// queue it would be one turn.
func TestAllClientsProgressInRandomSchedules(t *testing.T) {
	const clients, rounds, work = 5, 8, 5 * time.Millisecond
	for _, jitter := range []time.Duration{100 * time.Microsecond, 2 * time.Millisecond, 20 * time.Millisecond} {
		for _, nodes := range []int{3, 4, 5} {
			bubble.Test(t, func(t *testing.T) {
				crowd, all := newCrowd(t, nodes, clients, jitter)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // reached only in a deadlock
				defer cancel()
				took := crowd.takeTurns(ctx, all, rounds, work)
				crowd.close(all)
				if t.Failed() {
					return
				}
				slices.Sort(crowd.waits)
				turn := took / (clients * rounds)
				t.Logf("%d nodes, up to %v of jitter: %v a turn, longest wait %v", nodes, jitter, turn, crowd.waits[len(crowd.waits)-1])
				if crowd.maxHolders > 1 || crowd.fenceFell {
					t.Errorf("VIOLATION: %d holders at once; a fence fell: %v", crowd.maxHolders, crowd.fenceFell)
				}
				if longest := crowd.waits[len(crowd.waits)-1]; longest > 4*clients*(turn+10*time.Millisecond) {
					t.Errorf("the longest wait was %v, a turn takes %v", longest, turn)
				}
				if maxTurn := work + 20*(2*jitter+time.Millisecond); turn > maxTurn {
					t.Errorf("a turn takes %v, want at most %v", turn, maxTurn)
				}
			})
		}
	}
}

// Many clients claim one name at once, and their requests arrive at the nodes in
// different orders. A claim's place in each node's queue depends on its ticket, so the
// vote is split for a few turns only, and the cost of a turn does not grow with the
// number of waiters.
func TestTheCostOfATurnDoesNotGrowWithTheCrowd(t *testing.T) {
	for _, test := range []struct {
		clients, rounds int
	}{{32, 1}, {64, 1}, {64, 5}} {
		const maxTurn, maxRequests = 6 * crowdDelay, 13
		turn, requests := crowdCosts(t, test.clients, test.rounds)
		for try := 1; try < 3 && (turn > maxTurn || requests > maxRequests); try++ {
			// In about one of a hundred crowds the vote is split more often.
			turn, requests = crowdCosts(t, test.clients, test.rounds)
		}
		if turn > maxTurn || requests > maxRequests {
			t.Errorf("%d clients, %d rounds: a turn takes %v without the work, and %.1f requests; want at most %v and %d", test.clients, test.rounds, turn, requests, maxTurn, maxRequests)
		}
	}
}

const crowdDelay = 5 * time.Millisecond // the maximum delay of each direction

// crowdCosts returns the time of a turn without the work, and the number of its requests.
func crowdCosts(t *testing.T, clients, rounds int) (turn time.Duration, requests float64) {
	t.Helper()
	const work = 5 * time.Millisecond
	bubble.Test(t, func(t *testing.T) {
		crowd, all := newCrowd(t, 3, clients, 0)
		for _, lines := range crowd.lines {
			for _, l := range lines {
				l.requestDelay.Store(0)
				l.answerDelay.Store(0)
				l.jitter.Store(int64(crowdDelay))
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // reached only in a deadlock
		defer cancel()
		took := crowd.takeTurns(ctx, all, rounds, work)
		turns := clients * rounds
		turn = took/time.Duration(turns) - work
		for _, lines := range crowd.lines {
			for _, l := range lines {
				requests += float64(l.calls.Load())
			}
		}
		requests /= float64(turns)
		t.Logf("%d clients, %d rounds: %v and %.1f requests a turn, without the work", clients, rounds, turn, requests)
		crowd.close(all)
		if crowd.maxHolders > 1 || crowd.fenceFell {
			t.Errorf("VIOLATION: %d holders at once; a fence fell: %v", crowd.maxHolders, crowd.fenceFell)
		}
	})
	return turn, requests
}
