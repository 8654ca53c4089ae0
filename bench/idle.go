package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// idleWaiters measures the cost of a waiter: many clients, each with its own connections
// like a process, wait for a name that another client holds.
func idleWaiters(name string, waiters int, engines []string) scenario {
	const duration = 10 * time.Second
	return scenario{
		name: name, description: fmt.Sprintf("%d clients wait %v for a name that is held; what each costs", waiters, duration),
		unit: "requests/s", otherFigures: []string{"client µs/s", "server µs/s", "connections", "server %core of all"}, rounds: 1,
		engines: engines,
		fits:    func(c contender) bool { return waiters <= 100 || c.name == "pawl" },
		run: func(s server, c contender, _ time.Duration) (figures, error) {
			holder, err := c.open(s.address(), 30*time.Second)
			if err != nil {
				return nil, err
			}
			defer holder.close()
			unlock, _, err := holder.lock(context.Background(), "one")
			if err != nil {
				return nil, err
			}
			conns := countConnections(s.address())
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer cancel()
			for i := range waiters {
				cl, err := c.open(s.address(), 30*time.Second)
				if err != nil {
					return nil, err
				}
				defer cl.close()
				wg.Go(func() {
					if unlock, _, err := cl.lock(ctx, "one"); err == nil {
						_ = unlock()
					}
				})
				if i%10 == 9 {
					time.Sleep(50 * time.Millisecond) // so that not all join at once
				}
			}
			time.Sleep(time.Second + time.Duration(waiters)*20*time.Millisecond) // until all have joined
			calls, cpu := s.calls(c), startCPUMeter(s)
			time.Sleep(duration)
			clientCPU, serverCPU := cpu.perCycle(int64(waiters))
			calls = s.calls(c) - calls
			conns = countConnections(s.address()) - conns
			each := float64(waiters)
			out := figures{
				float64(calls) / each / duration.Seconds(), clientCPU / duration.Seconds(), serverCPU / duration.Seconds(), float64(conns) / each,
				serverCPU / duration.Seconds() * each / 1e4,
			}
			return out, unlock()
		},
	}
}
