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

const maxCachedNames = 1 << 14

func (c *cache) get(name string) (Stored, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.values[name]
	return s.Stored, ok && (s.until.IsZero() || time.Now().Before(s.until))
}

func (c *cache) put(name string, s Stored) { c.putUntil(name, s, time.Time{}) }

func (c *cache) putUntil(name string, s Stored, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.values[name]; !known && len(c.values) >= maxCachedNames {
		for old := range c.values { // any name, because dropping it costs only a load
			delete(c.values, old)
			break
		}
	}
	c.values[name] = cached{s, until}
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
