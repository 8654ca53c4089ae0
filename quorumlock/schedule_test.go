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
				w, all := newCrowd(t, nodes, clients, jitter)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // reached only in a deadlock
				defer cancel()
				took := w.takeTurns(ctx, all, rounds, work)
				w.close(all)
				if t.Failed() {
					return
				}
				slices.Sort(w.waits)
				turn := took / (clients * rounds)
				t.Logf("%d nodes, up to %v of jitter: %v a turn, longest wait %v", nodes, jitter, turn, w.waits[len(w.waits)-1])
				if w.maxHolders > 1 || w.fenceFell {
					t.Errorf("VIOLATION: %d holders at once; a fence fell: %v", w.maxHolders, w.fenceFell)
				}
				if longest := w.waits[len(w.waits)-1]; longest > 4*clients*(turn+10*time.Millisecond) {
					t.Errorf("the longest wait was %v, a turn takes %v", longest, turn)
				}
				if maxTurn := work + 20*(2*jitter+time.Millisecond); turn > maxTurn {
					t.Errorf("a turn takes %v, want at most %v", turn, maxTurn)
				}
			})
		}
	}
}
