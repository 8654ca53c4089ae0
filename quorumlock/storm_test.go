package quorumlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

// Many clients ask for one name at once, and their requests come to the nodes in
// different orders. A claim's place in each node's queue depends on its ticket, so the
// vote is split for a few turns at most, and the cost of a turn does not grow with the
// number of waiters.
func TestACrowdCostsNoMoreThanItsTurns(t *testing.T) {
	for _, x := range []struct {
		clients, rounds int
	}{{32, 1}, {64, 1}, {64, 5}} {
		const most, mostRequests = 6 * away, 13
		turn, requests := crowdCosts(t, x.clients, x.rounds)
		for try := 1; try < 3 && (turn > most || requests > mostRequests); try++ {
			// One crowd of some hundred has its vote split more often.
			turn, requests = crowdCosts(t, x.clients, x.rounds)
		}
		if turn > most || requests > mostRequests {
			t.Errorf("%d clients, %d times: a turn takes %v beside the work, and %.1f requests; want %v and %d at most", x.clients, x.rounds, turn, requests, most, mostRequests)
		}
	}
}

const away = 5 * time.Millisecond // the longest time of each way, for a crowd

// crowdCosts returns the time that a turn takes beside the work, and the number of its
// requests.
func crowdCosts(t *testing.T, clients, rounds int) (turn time.Duration, requests float64) {
	t.Helper()
	const work = 5 * time.Millisecond
	bubble.Test(t, func(t *testing.T) {
		w, all := newCrowd(t, 3, clients, 0)
		for _, lines := range w.lines {
			for _, l := range lines {
				l.requestDelay.Store(0)
				l.answerDelay.Store(0)
				l.jitter.Store(int64(away))
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // virtual ones: a deadlock is an error
		defer cancel()
		took := w.takeTurns(ctx, all, rounds, work)
		turns := clients * rounds
		turn = took/time.Duration(turns) - work
		for _, lines := range w.lines {
			for _, l := range lines {
				requests += float64(l.calls.Load())
			}
		}
		requests /= float64(turns)
		t.Logf("%d clients, %d times: %v and %.1f requests a turn, beside the work", clients, rounds, turn, requests)
		w.close(all)
		if w.most > 1 || w.fell {
			t.Errorf("VIOLATION: %d were inside at once; fences fell: %v", w.most, w.fell)
		}
	})
	return turn, requests
}
