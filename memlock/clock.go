package memlock

import (
	"sync"
	"time"
)

// Clock is a clock that moves only when a test moves it, so that the test can reach the
// exact instant of an expiry without waiting.
//
//	clock := memlock.NewClock(time.Now())
//	d := memlock.New(&memlock.Options{Now: clock.Now})
//	clock.Advance(30 * time.Second)
//
// It is the backend's clock only. A pawl.Client waits and renews on its own clock; run a
// test of both in testing/synctest, where the default clock is already virtual.
type Clock struct {
	mu sync.Mutex
	t  time.Time
}

// NewClock makes a clock that shows t.
func NewClock(t time.Time) *Clock { return &Clock{t: t} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// Advance moves the clock by d, which may be negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}
