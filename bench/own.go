package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// own is goroutines of one client that lock and unlock names of their own: cycles per second.
func own(name, what string, goroutines int) scenario {
	return scenario{
		name: name, what: what, unit: "cycles/s", more: true, others: []string{"server µs/cycle"},
		run: func(s *server, c contender, length time.Duration) (figures, error) {
			cl, err := c.open(s.addr, 30*time.Second)
			if err != nil {
				return nil, err
			}
			defer cl.close()
			n, took, cpu, err := cycles(s, cl, goroutines, length, func(g int) string { return fmt.Sprint("own", g) })
			if err != nil {
				return nil, err
			}
			return figures{float64(n) / took.Seconds(), float64(cpu.Microseconds()) / float64(max(n, 1))}, nil
		},
	}
}

// cycles locks and unlocks in goroutines for a while.
func cycles(s *server, cl client, goroutines int, length time.Duration, name func(g int) string) (n int64, took, cpu time.Duration, err error) {
	var count atomic.Int64
	var failed atomic.Pointer[error]
	run := func(length time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), length)
		defer cancel()
		// Who has no lock long after the end will have none: that is a failure, and must not hold up the others.
		patience, cancel := context.WithTimeout(context.Background(), length+5*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for name := name(g); ctx.Err() == nil; count.Add(1) {
					unlock, _, err := cl.lock(patience, name)
					if err == nil {
						err = unlock()
					}
					if err != nil {
						failed.Store(&err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	run(length / 5) // connections, scripts, caches
	count.Store(0)
	cpu, began := s.cpu(), time.Now()
	run(length)
	took = time.Since(began)
	if e := failed.Load(); e != nil {
		return 0, 0, 0, *e
	}
	return count.Load(), took, s.cpu() - cpu, nil
}
