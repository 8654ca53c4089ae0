package main

import (
	"context"
	"fmt"
	"time"
)

// distantServer measures the round trips of a cycle of one goroutine whose server is far
// away. The minimum is two: one to lock and one to unlock.
func distantServer(name string, roundTrip time.Duration) scenario {
	return scenario{
		name: name, description: fmt.Sprintf("one goroutine, the server %v away", roundTrip), unit: "round trips/cycle",
		otherFigures: append([]string{"calls/cycle"}, perCycleFigures...), rounds: 1, engines: onRedis,
		run: func(s server, c contender, length time.Duration) (figures, error) {
			p, err := startProxy(s.address(), roundTrip)
			if err != nil {
				return nil, err
			}
			defer p.stop()
			cl, err := c.open(p.addr(), 30*time.Second)
			if err != nil {
				return nil, err
			}
			defer cl.close()
			if err := lockAndUnlock(cl, "warm"); err != nil {
				return nil, err
			}
			// The processor time includes the proxy, which is in this process.
			n, calls, cpu, began := 0, s.calls(c), startCPUMeter(s), time.Now()
			for ; time.Since(began) < length; n++ {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				unlock, _, err := cl.lock(ctx, "far")
				cancel()
				if err != nil {
					return nil, fmt.Errorf("%s: %w", c.name, errGaveUp)
				}
				if err := unlock(); err != nil {
					return nil, err
				}
			}
			took := time.Since(began)
			clientCPU, serverCPU := cpu.perCycle(int64(n))
			calls = s.calls(c) - calls
			return figures{float64(took) / float64(n) / float64(roundTrip), float64(calls) / float64(n), clientCPU, serverCPU}, nil
		},
	}
}
