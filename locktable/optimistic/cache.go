package optimistic

import "sync"

// cache keeps what was seen last of some names, so that a step on one of them begins with
// its swap. What it has may be old: then the swap fails.
type cache struct {
	mu   sync.Mutex
	seen map[string]Stored
}

const cached = 1 << 14 // names, at most

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
	if _, known := c.seen[name]; !known && len(c.seen) >= cached {
		for old := range c.seen { // any, which costs a load at most
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
