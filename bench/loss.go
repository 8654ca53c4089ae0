package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// deadHolder measures the time from the end of a dead holder's lease until a waiter gets
// the lock, on a server with 200 000 other keys that expire.
func deadHolder() scenario {
	const ttl = 3 * time.Second
	return scenario{
		name: "dead-holder", description: "a dead holder's lease of 3 s is granted to another, with 200 000 other keys that expire",
		unit: "ms late", rounds: 1, engines: onRedis,
		run: func(s server, c contender, _ time.Duration) (figures, error) {
			ctx := context.Background()
			for i := 0; i < 200_000; i += 1000 {
				p := s.(*redisServer).admin.Pipeline()
				for j := range 1000 {
					p.Set(ctx, fmt.Sprint("other", i+j), "x", time.Hour)
				}
				if _, err := p.Exec(ctx); err != nil {
					return nil, err
				}
			}
			waiter, err := c.open(s.address(), ttl)
			if err != nil {
				return nil, err
			}
			defer waiter.close()
			if err := lockAndUnlock(waiter, "warm"); err != nil {
				return nil, err
			}
			other, err := startHolder(s.address(), c, ttl)
			if err != nil {
				return nil, err
			}
			died := other.kill()
			wait, cancel := context.WithTimeout(ctx, 90*time.Second)
			defer cancel()
			unlock, _, err := waiter.lock(wait, "dead")
			if err != nil {
				return figures{90_000}, nil // the waiter got no lock within 90 s
			}
			late := time.Since(died) - ttl
			return figures{ms(late)}, unlock()
		},
	}
}

// killedHolder measures the time from kill -9 of the holder until a waiter has the lock.
// The lease ends a TTL after its last renewal, or the session ends with its connection.
func killedHolder() scenario {
	const ttl = 2 * time.Second
	return scenario{
		name: "killed", description: "from kill -9 of the holder until the next one has the lock, TTL 2 s; median and worst of 3", unit: "ms",
		otherFigures: []string{"worst"}, rounds: 1,
		run: func(s server, c contender, _ time.Duration) (figures, error) {
			var took []float64
			for i := range 3 {
				d, err := measureKill(s, c, ttl, time.Duration(3*i+3)*100*time.Millisecond)
				if err != nil {
					return nil, err
				}
				took = append(took, d)
				if math.IsInf(d, 1) {
					break
				}
			}
			return figures{median(took), slices.Max(took)}, nil
		},
	}
}

// measureKill kills a holder some time after its grant, and returns the time until a
// waiter has the lock.
func measureKill(s server, c contender, ttl, after time.Duration) (float64, error) {
	waiter, err := c.open(s.address(), ttl)
	if err != nil {
		return 0, err
	}
	defer waiter.close()
	if err := lockAndUnlock(waiter, "warm"); err != nil {
		return 0, err
	}
	other, err := startHolder(s.address(), c, ttl)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	got := make(chan time.Time, 1)
	wg.Go(func() {
		if unlock, _, err := waiter.lock(ctx, "dead"); err == nil {
			got <- time.Now()
			_ = unlock()
		}
	})
	time.Sleep(after)
	return delayUntil(other.kill(), got), nil
}
