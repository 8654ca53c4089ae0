package quorumlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
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

// Here a minority at a time is down, and some clients try without waiting.
func TestAllClientsProgressWhileNodesComeAndGo(t *testing.T) {
	const clients, rounds = 5, 10
	bubble.Test(t, func(t *testing.T) {
		w, all := newCrowd(t, 3, clients, 2*time.Millisecond)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		var outages, done sync.WaitGroup
		outages.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				for _, lines := range w.lines {
					if rand.IntN(2) == 0 {
						lines[n%3].down.Store(true)
					}
				}
				_ = pause(ctx, time.Duration(rand.IntN(300))*time.Millisecond)
				for _, lines := range w.lines {
					lines[n%3].down.Store(false)
				}
				_ = pause(ctx, time.Duration(rand.IntN(100))*time.Millisecond)
			}
		})
		for i, c := range all {
			done.Go(func() {
				for w.rounds[i] < rounds {
					began := time.Now()
					lock := c.Mutex("jobs")
					l, err := lock.Lock(ctx)
					if i == 0 && rand.IntN(2) == 0 && err == nil {
						_ = l.Release(t.Context())
						l, err = lock.TryLock(ctx)
						if errors.Is(err, pawl.ErrHeld) || errors.Is(err, pawl.ErrUnavailable) {
							continue // a try is not repeated
						}
					}
					if err != nil {
						t.Errorf("%v", err)
						return
					}
					w.work(i, l, time.Since(began), time.Millisecond)
					if err := l.Release(t.Context()); err != nil && !errors.Is(err, pawl.ErrUnavailable) {
						// otherwise it continues in the background
						t.Errorf("Release: %v", err)
					}
				}
			})
		}
		done.Wait()
		stop()
		outages.Wait()
		for _, lines := range w.lines {
			down(false, lines...)
		}
		w.close(all)
		if t.Failed() {
			return
		}
		slices.Sort(w.waits)
		t.Logf("longest wait %v, median %v", w.waits[len(w.waits)-1], w.waits[len(w.waits)/2])
		if w.maxHolders > 1 || w.fenceFell {
			t.Errorf("VIOLATION: %d holders at once; a fence fell: %v", w.maxHolders, w.fenceFell)
		}
	})
}
