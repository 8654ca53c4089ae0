package quorumlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Many clients ask for one name at once, and their requests come to the nodes in
// different orders. A claim stands in each node's queue where its ticket puts it, so the
// vote is split for a few turns at most, and what a turn costs does not grow with the
// number of those who wait.
func TestACrowdCostsNoMoreThanItsTurns(t *testing.T) {
	const away, work = 5 * time.Millisecond, 5 * time.Millisecond // each way takes up to so long
	for _, x := range []struct {
		clients, rounds int
	}{{32, 1}, {64, 1}, {64, 5}} {
		synctest.Test(t, func(t *testing.T) {
			w, all := newCrowd(t, 3, x.clients, 0)
			for _, lines := range w.lines {
				for _, l := range lines {
					l.out.Store(0)
					l.back.Store(0)
					l.jitter.Store(int64(away))
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // virtual ones: a deadlock is an error
			defer cancel()
			began := time.Now()
			var done sync.WaitGroup
			for i, c := range all {
				done.Go(func() {
					for range x.rounds {
						asked := time.Now()
						l, err := c.Mutex("jobs").Lock(ctx)
						if err != nil {
							t.Errorf("Lock: %v", err)
							return
						}
						w.work(i, l, time.Since(asked), work)
						if err := l.Release(t.Context()); err != nil {
							t.Errorf("Release: %v", err)
						}
					}
				})
			}
			done.Wait()
			turns := x.clients * x.rounds
			turn := time.Since(began)/time.Duration(turns) - work
			requests := 0.0
			for _, lines := range w.lines {
				for _, l := range lines {
					requests += float64(l.calls.Load())
				}
			}
			requests /= float64(turns)
			t.Logf("%d clients, %d times: %v and %.1f requests a turn, beside the work", x.clients, x.rounds, turn, requests)
			w.close(all)
			if w.most > 1 || w.fell {
				t.Errorf("%d were inside at once; fences fell: %v", w.most, w.fell)
			}
			if most := 3 * 2 * away; turn > most {
				t.Errorf("%d clients, %d times: a turn takes %v beside the work, want %v at most", x.clients, x.rounds, turn, most)
			}
			if requests > 13 {
				t.Errorf("%d clients, %d times: %.1f requests a turn, want 13 at most", x.clients, x.rounds, requests)
			}
		})
	}
}
