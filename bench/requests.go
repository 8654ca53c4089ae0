package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// requests measures the requests of a cycle, and the connections of a client. The server
// counts the requests, as statements, requests or messages.
func requests() scenario {
	return scenario{
		name: "requests", description: "what a cycle asks of the server, and the connections of one client", unit: "requests/cycle",
		otherFigures: []string{"64 goroutines", "new names", "connections", "with 64 names held"}, rounds: 1,
		run: func(s server, c contender, _ time.Duration) (figures, error) {
			before := countConnections(s.address())
			cl, err := c.open(s.address(), 30*time.Second)
			if err != nil {
				return nil, err
			}
			defer cl.close()
			if err := lockAndUnlock(cl, "warm"); err != nil {
				return nil, err
			}
			one, err := requestsPerCycle(s, c, 1, 200, func(_, _ int) error { return lockAndUnlock(cl, "warm") })
			if err != nil {
				return nil, err
			}
			idleConns := countConnections(s.address()) - before
			fresh, err := requestsPerCycle(s, c, 1, 200, func(_, i int) error { return lockAndUnlock(cl, fmt.Sprint("new", i)) })
			if err != nil {
				return nil, err
			}
			cycleOnOwnName := func(g, _ int) error { return lockAndUnlock(cl, fmt.Sprint("own", g)) }
			if _, err := requestsPerCycle(s, c, 64, 1, cycleOnOwnName); err != nil {
				return nil, err
			}
			many, err := requestsPerCycle(s, c, 64, 10, cycleOnOwnName)
			if err != nil {
				return nil, err
			}
			unlocks, err := holdAll(cl, 64)
			held := countConnections(s.address()) - before
			for _, unlock := range unlocks {
				_ = unlock()
			}
			return figures{one, many, fresh, float64(idleConns), float64(held)}, err
		},
	}
}

// requestsPerCycle runs cycles in goroutines, and returns the requests per cycle.
func requestsPerCycle(s server, c contender, goroutines, each int, cycle func(g, i int) error) (float64, error) {
	calls := s.calls(c)
	var wg sync.WaitGroup
	errs := make([]error, goroutines)
	for g := range goroutines {
		wg.Go(func() {
			for i := 0; i < each && errs[g] == nil; i++ {
				errs[g] = cycle(g, i)
			}
		})
	}
	wg.Wait()
	return float64(s.calls(c)-calls) / float64(goroutines*each), errors.Join(errs...)
}

// holdAll locks this number of names at the same time.
func holdAll(cl client, names int) ([]func() error, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	unlocks, errs := make([]func() error, names), make([]error, names)
	var wg sync.WaitGroup
	for i := range names {
		wg.Go(func() { unlocks[i], _, errs[i] = cl.lock(ctx, fmt.Sprint("own", i)) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return unlocks, nil
}
