package pawl

import (
	"math"
	"sync"
	"sync/atomic"
)

// calls counts those of a kind that are under way, for Close and Shutdown to wait for. It is a sync.WaitGroup that can be
// shut: after that nobody enters, so the waiting comes to an end.
type calls struct {
	n                 atomic.Int64 // how many are in; from shut on, that much less
	shutting, emptied sync.Once

	idle chan struct{} // closed when it is shut and the last one has left
}

const shutCalls = math.MinInt64 / 2

func newCalls() *calls { return &calls{idle: make(chan struct{})} }

// enter counts one in; false means that it is shut.
func (c *calls) enter() bool {
	if c.n.Add(1) > 0 {
		return true
	}
	c.leave()
	return false
}

func (c *calls) leave() {
	if c.n.Add(-1) == shutCalls {
		c.emptied.Do(func() { close(c.idle) })
	}
}

// in is how many are in, once it is shut.
func (c *calls) in() int { return int(c.n.Load() - shutCalls) }

// shut lets nobody in any more, and returns what is closed when the last one has left.
func (c *calls) shut() <-chan struct{} {
	c.shutting.Do(func() {
		c.n.Add(shutCalls + 1) // with one in, so that leave finds out if nobody is
		c.leave()
	})
	return c.idle
}
