package sim

import (
	"sync"
	"time"
)

// A clock is the clock of a node. It runs a little faster or slower than true time, which
// is the time of the bubble, and it may be set. Clients use true time: only the relative
// speed of a node's clock matters.
type clock struct {
	start time.Time
	ppm   int64 // how much faster, in millionths

	mu    sync.Mutex
	ahead time.Duration
}

// maxDrift is the largest drift of a working clock. driver.End allows for a thousandth.
const maxDrift = 500 // ppm

func (c *clock) now() time.Time {
	t := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.Add(c.ahead + t.Sub(c.start)/1_000_000*time.Duration(c.ppm))
}

func (c *clock) jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += by
}

// A moment is a true time, counted from the beginning of a schedule. never stands for no
// moment.
type moment = time.Duration

const never moment = -1

// sample is one reading of a node's clock: the clock when an answer was made, and the
// time when a process received the answer.
type sample struct {
	node     time.Time
	received time.Time
}

// bound returns a time on the node's clock. While the clock shows an earlier time, t lies
// in the future. This is the rule in driver.End.
func (s sample) bound(t time.Time) time.Time {
	ahead := t.Sub(s.received)
	return s.node.Add(ahead - max(ahead, 0)/1000)
}
