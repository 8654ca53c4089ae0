package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// held is leases that are held and renewed: what they cost this process and the server.
func held(name string, leases int) scenario {
	const ttl = 10 * time.Second
	return scenario{
		name: name, what: fmt.Sprintf("%d leases of 10 s held by one client for 20 s", leases), unit: "B/lease",
		others: []string{"goroutines", "client %core", "server %core", "lost"}, rounds: 1,
		fit: func(c contender) bool { return c.renews && (leases <= 10_000 || c.name == "pawl") },
		run: func(s server, c contender, _ time.Duration) (figures, error) {
			cl, err := c.open(s.address(), ttl)
			if err != nil {
				return nil, err
			}
			defer cl.close()
			if err := once(cl, "warm"); err != nil {
				return nil, err
			}
			losts := make([]func() <-chan struct{}, leases)
			unlocks := make([]func() error, leases)
			goroutines, before := runtime.NumGoroutine(), heap()
			var wg sync.WaitGroup
			var mu sync.Mutex
			for g := range 64 {
				wg.Go(func() {
					for i := g; i < leases; i += 64 {
						unlock, lost, e := cl.lock(context.Background(), fmt.Sprint("held", i))
						mu.Lock()
						unlocks[i], losts[i] = unlock, lost
						if e != nil {
							err = e
						}
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			if err != nil {
				return nil, err
			}
			bytes := float64(heap()-before) / float64(leases)
			mine, theirs := selfCPU(), s.cpu()
			time.Sleep(2 * ttl)
			mine, theirs = selfCPU()-mine, s.cpu()-theirs
			gone := 0
			for _, lost := range losts {
				select {
				case <-lost():
					gone++
				default:
				}
			}
			out := figures{
				bytes, float64(runtime.NumGoroutine() - goroutines),
				100 * mine.Seconds() / (2 * ttl).Seconds(), 100 * theirs.Seconds() / (2 * ttl).Seconds(), float64(gone),
			}
			for g := range 64 {
				wg.Go(func() {
					for i := g; i < leases; i += 64 {
						_ = unlocks[i]()
					}
				})
			}
			wg.Wait()
			return out, nil
		},
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
