package servertest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Storm makes drivers take turns at a name while cut ends their connections again and
// again. There is one holder at a time, fences rise, and the turns continue.
func Storm(tb TB, drivers []driver.Driver, cut func()) {
	tb.Helper()
	const enough = 10
	ctx, end := context.WithTimeout(context.Background(), 3*time.Minute) // only a hang takes so long
	defer end()
	var inside, turns atomic.Int64
	var last atomic.Uint64
	var all sync.WaitGroup
	for _, d := range drivers {
		m := steady(tb, d).Mutex("job")
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
				_ = l.Release(ctx) // may fail: the client repeats it in the background
			}
		})
	}
	for began := time.Now(); ctx.Err() == nil && (turns.Load() < enough || time.Since(began) < 3*time.Second); {
		had := turns.Load()
		cut()
		// A slow machine gets to the lock before the next cut, mostly.
		for n := 0; n == 0 || n < 40 && turns.Load() == had; n++ {
			time.Sleep(50 * time.Millisecond)
		}
	}
	end()
	all.Wait()
	if n := turns.Load(); n < enough {
		tb.Errorf("only %d turns", n)
	}
}
