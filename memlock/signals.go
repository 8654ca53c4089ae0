package memlock

import (
	"strconv"
	"sync"

	"github.com/pawl-go/pawl/locktable"
)

// clients are the drivers of a table, by their inboxes. The zero value has no driver.
type clients struct {
	mu   sync.RWMutex
	open map[string]*locktable.GroupedDriver
	last int
}

// join makes a driver with an inbox of its own.
func (c *clients) join(open func(inbox string) *locktable.GroupedDriver) *locktable.GroupedDriver {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	inbox := strconv.Itoa(c.last)
	if c.open == nil {
		c.open = map[string]*locktable.GroupedDriver{}
	}
	c.open[inbox] = open(inbox)
	return c.open[inbox]
}

func (c *clients) leave(inbox string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, inbox)
}

// find returns the driver that has an inbox, or nil if the driver is closed.
func (c *clients) find(inbox string) *locktable.GroupedDriver {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.open[inbox]
}

// deliver sends the signals of a step. The caller must have unlocked the shard, because
// the receiver of a signal may call the driver again at once.
func (t *table) deliver(signals []locktable.Signal) {
	for _, s := range signals {
		if d := t.clients.find(s.Inbox); d != nil {
			d.Deliver(s.Signal)
		}
	}
}

// Watch implements locktable.Watchable.
func (t *table) Watch(name string, f func()) (stop func()) { return t.watchers.Watch(name, f) }
