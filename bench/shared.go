package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// sharedName measures clients, each with its own connections, that lock the same name:
// the time of a hand-over, the longest wait, the fairness, and the cost for the server.
//
// The mean hand-over is the time per cycle without the work.
func sharedName(name, what string, clients int, work time.Duration) scenario {
	return scenario{
		name: name, description: what, unit: "ms/hand-over",
		otherFigures: append([]string{"longest wait ms", "Jain", "calls/cycle", "cycles"}, perCycleFigures...),
		chartFigures: []string{"longest wait ms", "Jain"}, // granting to the same client again is quick, but unfair
		run: func(s server, c contender, length time.Duration) (figures, error) {
			all := make([]client, clients)
			for i := range all {
				cl, err := c.open(s.address(), 30*time.Second)
				if err != nil {
					return nil, err
				}
				defer cl.close()
				all[i] = cl
				if err := lockAndUnlock(cl, fmt.Sprint("warm", i)); err != nil {
					return nil, err
				}
			}
			counts, longest := make([]int, clients), make([]time.Duration, clients)
			calls, cpu, began := s.calls(c), startCPUMeter(s), time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), length)
			defer cancel()
			var worked time.Duration // protected by the measured lock
			var wg sync.WaitGroup
			for i, cl := range all {
				wg.Go(func() {
					for ctx.Err() == nil {
						asked := time.Now()
						unlock, _, err := cl.lock(ctx, "one")
						longest[i] = max(longest[i], time.Since(asked))
						if err != nil {
							return // at the end: the wait counts, but is no cycle
						}
						got := time.Now()
						time.Sleep(work)
						worked += time.Since(got)
						_ = unlock()
						counts[i]++
					}
				})
			}
			wg.Wait()
			took := time.Since(began)
			n, worst := 0, time.Duration(0)
			for i := range all {
				n, worst = n+counts[i], max(worst, longest[i])
			}
			if n == 0 {
				return nil, errGaveUp
			}
			clientCPU, serverCPU := cpu.perCycle(int64(n))
			calls = s.calls(c) - calls
			return figures{
				ms(took-worked) / float64(n), ms(worst), jainIndex(counts), float64(calls) / float64(n), float64(n), clientCPU, serverCPU,
			}, nil
		},
	}
}

// lockAndUnlock runs one cycle.
func lockAndUnlock(cl client, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	unlock, _, err := cl.lock(ctx, name)
	if err != nil {
		return err
	}
	return unlock()
}

// localName measures 64 goroutines of one client that lock the same name.
func localName() scenario {
	return scenario{
		name: "local-64", description: "one process, 64 goroutines on one name", unit: "cycles/s", moreIsBetter: true,
		otherFigures: perCycleFigures,
		run: func(s server, c contender, length time.Duration) (figures, error) {
			cl, err := c.open(s.address(), 30*time.Second)
			if err != nil {
				return nil, err
			}
			defer cl.close()
			return runCycles(s, cl, 64, length, func(int) string { return "one" })
		},
	}
}
