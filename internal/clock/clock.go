// Package clock measures how much time has passed, including the machine's sleep. On most
// systems the monotonic clock stands still during sleep, and leases do not.
package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Reading has the values of the clocks that decide how long a holder may trust a lease.
type Reading struct {
	Mono  time.Time     // NTP does not move it, but it stands still while the machine sleeps
	Slept time.Duration // how long the machine has slept since the Clock was made
}

// Since returns the time from earlier to r, sleep included.
func (r Reading) Since(earlier Reading) time.Duration {
	return r.Mono.Sub(earlier.Mono) + r.Slept - earlier.Slept
}

// Clock makes readings. It reads the boot clock only when the wall clock and the
// monotonic clock have drifted apart since the last time, because only then can the
// machine have slept. So a reading is usually one time.Now. If an operator has set the
// wall clock, the boot clock shows no sleep.
//
// Each client makes a Clock, so that a client inside testing/synctest sees only virtual
// time.
type Clock struct {
	base          time.Time     // the first reading; it carries the monotonic and the wall clock
	baseSinceBoot time.Duration // the value of sinceBoot at base

	drift atomic.Int64 // the lead of the wall clock over the monotonic one when slept was last measured

	mu    sync.Mutex // held while slept is measured
	slept atomic.Int64
}

// driftTolerance is more than the drift that NTP causes when it slews the wall clock. A
// sleep causes more.
const driftTolerance = time.Millisecond

// New makes a clock that counts from now. It reads the clocks in the opposite order of
// measureSleep, so that a pause between two readings counts as sleep.
func New() *Clock {
	boot := sinceBoot()
	return &Clock{base: time.Now(), baseSinceBoot: boot}
}

// Now reads the clocks.
func (c *Clock) Now() Reading {
	t := time.Now()
	drift := t.Round(0).Sub(c.base.Round(0)) - t.Sub(c.base)
	if d := drift - time.Duration(c.drift.Load()); d > driftTolerance || d < -driftTolerance {
		c.measureSleep(drift)
	}
	return Reading{Mono: t, Slept: time.Duration(c.slept.Load())}
}

// measureSleep measures the machine's total sleep: the time by which the boot clock has
// advanced more than the monotonic clock.
func (c *Clock) measureSleep(drift time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	awake := time.Since(c.base)
	slept := sinceBoot() - c.baseSinceBoot - awake
	if slept > time.Duration(c.slept.Load())+driftTolerance {
		c.slept.Store(int64(slept))
	}
	c.drift.Store(int64(drift))
}
