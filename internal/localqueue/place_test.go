package localqueue

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The tree that counts places must agree with a plain count.
func TestTheTreeCountsPlacesRight(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	qs := newTestQueues()
	var waiters []*Waiter[*claimant]
	for range 20_000 {
		switch r := random.IntN(100); {
		case r < 50 || len(waiters) < 2:
			waiters = append(waiters, qs.enter(exclusive("x")))
		case r < 90:
			i := random.IntN(len(waiters))
			if random.IntN(4) == 0 {
				i = 0
			}
			waiters[i].Leave(start)
			waiters = slices.Delete(waiters, i, i+1)
		case r < 91:
			for len(waiters) > 2 && random.IntN(200) > 0 { // most waiters leave
				waiters[len(waiters)-1].Leave(start)
				waiters = waiters[:len(waiters)-1]
			}
		default:
			i := 1 + random.IntN(len(waiters)-1)
			if n := position(t, waiters[i]); n != i+1 {
				t.Fatalf("place %d, want %d of %d", n, i+1, len(waiters))
			}
		}
	}
	for _, w := range waiters {
		w.Leave(start)
	}
	qs.wantNoQueues(t)
}
