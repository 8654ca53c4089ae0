package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// perCycleFigures are further figures of scenarios that count cycles: the processor time
// of this process, which has the clients, and of the server. They vary less than the
// throughput between machines and between days.
var perCycleFigures = []string{"client µs/cycle", "server µs/cycle"}

// ownNames measures cycles per second of one client. Each of its goroutines has its own
// name.
func ownNames(name, what string, goroutines int) scenario {
	return scenario{
		name: name, description: what, unit: "cycles/s", moreIsBetter: true, otherFigures: perCycleFigures,
		run: func(s server, c contender, length time.Duration) (figures, error) {
			cl, err := c.open(s.address(), 30*time.Second)
			if err != nil {
				return nil, err
			}
			defer cl.close()
			return runCycles(s, cl, goroutines, length, func(g int) string { return fmt.Sprint("own", g) })
		},
	}
}

// runCycles locks and unlocks in goroutines for length. It returns the number of cycles
// per second and the cost of a cycle.
func runCycles(s server, cl client, goroutines int, length time.Duration, name func(g int) string) (figures, error) {
	var count atomic.Int64
	var failed atomic.Pointer[error]
	run := func(length time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), length)
		defer cancel()
		// A goroutine that has no lock 5 s after the end fails, so that it does not delay
		// the others.
		graceCtx, cancel := context.WithTimeout(context.Background(), length+5*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for name := name(g); ctx.Err() == nil; count.Add(1) {
					unlock, _, err := cl.lock(graceCtx, name)
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
	run(length / 5) // warms up connections, scripts and caches
	count.Store(0)
	cpu, began := startCPUMeter(s), time.Now()
	run(length)
	took := time.Since(began)
	client, server := cpu.perCycle(count.Load())
	if e := failed.Load(); e != nil {
		return nil, *e
	}
	return figures{float64(count.Load()) / took.Seconds(), client, server}, nil
}
