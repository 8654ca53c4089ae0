package servertest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Storm makes drivers take turns at a name while cut ends their connections repeatedly.
// There must be one holder at a time, fences must rise, and the turns must continue.
func Storm(tb TB, drivers []driver.Driver, cut func()) {
	tb.Helper()
	const minTurns = 10
	ctx, end := context.WithTimeout(context.Background(), 3*time.Minute) // only a hang takes so long
	defer end()
	var inside, turns atomic.Int64
	var last atomic.Uint64
	var all sync.WaitGroup
	for _, d := range drivers {
		m := Client(tb, d).Mutex("job")
		all.Go(func() {
			for ctx.Err() == nil {
				l, err := m.Lock(ctx)
				if err != nil {
					if ctx.Err() == nil {
						tb.Errorf("Lock: %v", err)
						return
					}
					continue
				}
				if n, before := inside.Add(1), last.Swap(l.Fence()); n > 1 || l.Fence() <= before {
					tb.Errorf("VIOLATION: %d hold it, with the fence %d after %d", n, l.Fence(), before)
				}
				turns.Add(1)
				time.Sleep(2 * time.Millisecond)
				inside.Add(-1)
				_ = l.Release(ctx) // if it fails, the client repeats it in the background
			}
		})
	}
	for began := time.Now(); ctx.Err() == nil && (turns.Load() < minTurns || time.Since(began) < 3*time.Second); {
		before := turns.Load()
		cut()
		// Give a slow machine time for a turn before the next cut.
		for n := 0; n == 0 || n < 40 && turns.Load() == before; n++ {
			time.Sleep(50 * time.Millisecond)
		}
	}
	end()
	all.Wait()
	if n := turns.Load(); n < minTurns {
		tb.Errorf("only %d turns, want %d", n, minTurns)
	}
}
