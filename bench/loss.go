package main

import (
	"context"
	"fmt"
	"time"
)

// deleted is how long it takes from a DEL of the lock's key until the holder is told.
func deleted() scenario {
	return scenario{
		name: "deleted", what: "from DEL of the key until the holder is told, p99 of 100", unit: "ms",
		others: []string{"median ms"}, rounds: 1,
		engines: onRedis, fit: func(c contender) bool { return c.tells },
		run: func(s server, c contender, _ time.Duration) (figures, error) {
			cl, err := c.open(s.address(), 30*time.Second)
			if err != nil {
				return nil, err
			}
			defer cl.close()
			var told []time.Duration
			for i := range 100 {
				name := fmt.Sprint("deleted", i)
				unlock, lost, err := cl.lock(context.Background(), name)
				if err != nil {
					return nil, err
				}
				gone := lost()
				time.Sleep(20 * time.Millisecond)
				began := time.Now()
				if n := s.(*redisServer).c.Del(context.Background(), cl.(keyed).key(name)).Val(); n != 1 {
					return nil, fmt.Errorf("%s has no key %q", c.name, cl.(keyed).key(name))
				}
				select {
				case <-gone:
					told = append(told, time.Since(began))
				case <-time.After(15 * time.Second):
					return nil, fmt.Errorf("%s: the holder was not told in 15 s", c.name)
				}
				_ = unlock()
			}
			return figures{ms(quantile(told, 0.99)), ms(quantile(told, 0.5))}, nil
		},
	}
}

// dead is how long after the end of a dead holder's lease a waiter gets the lock, on a
// server that has 200 000 other keys to expire.
func dead() scenario {
	const ttl = 3 * time.Second
	return scenario{
		name: "dead-holder", what: "a dead holder's lease of 3 s is granted to another, with 200 000 other keys that expire",
		unit: "ms late", rounds: 1, engines: onRedis,
		run: func(s server, c contender, _ time.Duration) (figures, error) {
			ctx := context.Background()
			for i := 0; i < 200_000; i += 1000 {
				p := s.(*redisServer).c.Pipeline()
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
			if err := once(waiter, "warm"); err != nil {
				return nil, err
			}
			died, err := dieHolding(s.address(), c.name, ttl)
			if err != nil {
				return nil, err
			}
			wait, cancel := context.WithTimeout(ctx, 90*time.Second)
			defer cancel()
			unlock, _, err := waiter.lock(wait, "dead")
			if err != nil {
				return figures{90_000}, nil // not within a minute and a half
			}
			late := time.Since(died) - ttl
			return figures{ms(late)}, unlock()
		},
	}
}
