package main

import (
	"context"
	"fmt"
	"time"
)

// quorum measures one goroutine on several independent servers at different distances:
// the time to lock and the time to unlock, in round trips to the farthest server. The
// minimum is one round trip each, if the client asks all servers at once.
func quorum(name string, nodes int) scenario {
	return scenario{
		name: name, description: fmt.Sprintf("one goroutine on %d independent servers, 10 ms to 20 ms away", nodes), unit: "of the farthest's round trip to lock",
		otherFigures: append([]string{"to unlock", "longest lock", "calls/cycle and node"}, perCycleFigures[:1]...), rounds: 1, engines: onRedis,
		fits: func(c contender) bool { return c.quorum != nil },
		run: func(s server, c contender, length time.Duration) (figures, error) {
			const near, far = 10 * time.Millisecond, 20 * time.Millisecond
			servers, addrs := []server{s}, []string(nil)
			for len(servers) < nodes {
				another, err := startRedis()
				if err != nil {
					return nil, err
				}
				defer another.stop()
				servers = append(servers, another)
			}
			for i, s := range servers {
				p, err := startProxy(s.address(), near+(far-near)*time.Duration(i)/time.Duration(nodes-1))
				if err != nil {
					return nil, err
				}
				defer p.stop()
				addrs = append(addrs, p.addr())
			}
			cl, err := c.quorum(addrs, 30*time.Second)
			if err != nil {
				return nil, err
			}
			defer cl.close()
			for range 3 {
				if err := lockAndUnlock(cl, "far"); err != nil {
					return nil, err
				}
			}
			var lockTime, unlockTime, longest time.Duration
			calls := make([]int64, nodes)
			for i, s := range servers {
				calls[i] = s.calls(c)
			}
			n, used := 0, selfCPU() // the proxies are in this process, too
			for began := time.Now(); time.Since(began) < length; n++ {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				asked := time.Now()
				unlock, _, err := cl.lock(ctx, "far")
				cancel()
				if err != nil {
					return nil, fmt.Errorf("%s: %w", c.name, err)
				}
				got := time.Now()
				if err := unlock(); err != nil {
					return nil, err
				}
				lockTime, unlockTime, longest = lockTime+got.Sub(asked), unlockTime+time.Since(got), max(longest, got.Sub(asked))
			}
			used = selfCPU() - used
			sum := int64(0)
			for i, s := range servers {
				sum += s.calls(c) - calls[i]
			}
			trips := func(d time.Duration) float64 { return float64(d) / float64(far) }
			return figures{
				trips(lockTime) / float64(n), trips(unlockTime) / float64(n), trips(longest), float64(sum) / float64(n*nodes),
				float64(used.Microseconds()) / float64(n),
			}, nil
		},
	}
}
