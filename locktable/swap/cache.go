package swap

import "sync"

// cache keeps the last known values of some names, so that a step can begin with its
// swap. A value may be outdated: then the swap fails.
type cache struct {
	mu   sync.Mutex
	seen map[string]Stored
}

const maxCachedNames = 1 << 14

func (c *cache) get(name string) (Stored, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.seen[name]
	return s, ok
}

func (c *cache) put(name string, s Stored) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]Stored{}
	}
	if _, known := c.seen[name]; !known && len(c.seen) >= maxCachedNames {
		for old := range c.seen { // any name, because dropping it costs only a load
			delete(c.seen, old)
			break
		}
	}
	c.seen[name] = s
}

func (c *cache) drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, name)
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.seen)
}
