package sim

import (
	"sync"
	"time"
)

// A clock is a node's. It differs from true time, which is the bubble's, runs a little
// faster or slower, and may be set. Clients live on true time: what matters is how fast a
// node's clock runs beside theirs.
type clock struct {
	start time.Time
	ppm   int64 // how much faster, in millionths

	mu    sync.Mutex
	ahead time.Duration
}

// The drift of a clock that is not broken: a thousandth is what driver.End allows for.
const mostDrift = 500 // ppm

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

// A moment is when something happened, in true time from the beginning of a schedule.
// never is none.
type moment = time.Duration

const never moment = -1

// sample is what a process knows of a node's clock: where it stood when an answer was
// made, and when that came in.
type sample struct {
	node     time.Time
	received time.Time
}

// bound says when, on the node's clock, this moment has certainly not come before: the
// rule in driver.End.
func (s sample) bound(moment time.Time) time.Time {
	ahead := moment.Sub(s.received)
	return s.node.Add(ahead - max(ahead, 0)/1000)
}
