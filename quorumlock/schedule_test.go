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

// In any order of claims, all make progress, none starves, and one at a time is inside.
// No claim waits for more than four turns of each other one, where one common queue would
// make it one turn.
func TestAllClientsProgressInRandomSchedules(t *testing.T) {
	const clients, rounds, work = 5, 8, 5 * time.Millisecond
	for _, jitter := range []time.Duration{100 * time.Microsecond, 2 * time.Millisecond, 20 * time.Millisecond} {
		for _, nodes := range []int{3, 4, 5} {
			bubble.Test(t, func(t *testing.T) {
				w, all := newCrowd(t, nodes, clients, jitter)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // virtual ones: a deadlock is an error
				defer cancel()
				took := w.takeTurns(ctx, all, rounds, work)
				w.close(all)
				if t.Failed() {
					return
				}
				slices.Sort(w.waits)
				turn := took / (clients * rounds)
				t.Logf("%d nodes, up to %v of jitter: %v a turn, longest wait %v", nodes, jitter, turn, w.waits[len(w.waits)-1])
				if w.most > 1 || w.fell {
					t.Errorf("VIOLATION: %d were inside at once; fences fell: %v", w.most, w.fell)
				}
				if longest := w.waits[len(w.waits)-1]; longest > 4*clients*(turn+10*time.Millisecond) {
					t.Errorf("the longest wait was %v, a turn takes %v", longest, turn)
				}
				if most := work + 20*(2*jitter+time.Millisecond); turn > most {
					t.Errorf("a turn takes %v, want %v at most", turn, most)
				}
			})
		}
	}
}

// The same with nodes that come and go, a minority at a time, and with tries among the
// waiters.
func TestAllClientsProgressWhileNodesComeAndGo(t *testing.T) {
	const clients, rounds = 5, 10
	bubble.Test(t, func(t *testing.T) {
		w, all := newCrowd(t, 3, clients, 2*time.Millisecond)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		var trouble, done sync.WaitGroup
		trouble.Go(func() {
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
					asked := time.Now()
					lock := c.Mutex("jobs")
					l, err := lock.Lock(ctx)
					if i == 0 && rand.IntN(2) == 0 && err == nil {
						_ = l.Release(t.Context())
						l, err = lock.TryLock(ctx)
						if errors.Is(err, pawl.ErrHeld) || errors.Is(err, pawl.ErrUnavailable) {
							continue // a try rides nothing out
						}
					}
					if err != nil {
						t.Errorf("%v", err)
						return
					}
					w.work(i, l, time.Since(asked), time.Millisecond)
					if err := l.Release(t.Context()); err != nil && !errors.Is(err, pawl.ErrUnavailable) {
						// it goes on in the background
						t.Errorf("Release: %v", err)
					}
				}
			})
		}
		done.Wait()
		stop()
		trouble.Wait()
		for _, lines := range w.lines {
			down(false, lines...)
		}
		w.close(all)
		if t.Failed() {
			return
		}
		slices.Sort(w.waits)
		t.Logf("longest wait %v, median %v", w.waits[len(w.waits)-1], w.waits[len(w.waits)/2])
		if w.most > 1 || w.fell {
			t.Errorf("VIOLATION: %d were inside at once; fences fell: %v", w.most, w.fell)
		}
	})
}
