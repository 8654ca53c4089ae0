package swap

import (
	"sync"
	"time"
)

// cache keeps the last known values of some names, so that a step can begin with its
// swap. A value may be outdated: then the swap fails.
type cache struct {
	mu     sync.Mutex
	values map[string]cached
}

type cached struct {
	Stored
	until time.Time // when to forget it; zero: never
}

func (c cached) expired() bool { return !c.until.IsZero() && !time.Now().Before(c.until) }

const maxCachedNames = 1 << 14

func (c *cache) get(name string) (Stored, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.values[name]
	return s.Stored, ok && !s.expired()
}

func (c *cache) put(name string, s Stored) { c.putUntil(name, s, time.Time{}) }

func (c *cache) putUntil(name string, s Stored, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.values[name]; !known {
		c.makeRoom()
	}
	c.values[name] = cached{s, until}
}

// makeRoom checks two random names, and drops those that have expired. So at most half
// of the values have expired in the long run. If the cache is full, makeRoom drops one in
// any case, because this costs only a load.
func (c *cache) makeRoom() {
	checked := 0
	for name, v := range c.values {
		if v.expired() || len(c.values) >= maxCachedNames {
			delete(c.values, name)
		}
		if checked++; checked == 2 {
			break
		}
	}
}

func (c *cache) drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.values, name)
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.values)
}
