// Package clock tells how much time has passed, what the machine slept included. The
// monotonic clock stands still during sleep on most systems, and leases do not.
package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Reading is one look at the clocks that decide how long a lease may be trusted.
type Reading struct {
	Mono  time.Time     // NTP does not move it, but it stands still while the machine sleeps
	Slept time.Duration // how long the machine has slept until then
}

// Since is the time from earlier to r, sleep included.
func (r Reading) Since(earlier Reading) time.Duration {
	return r.Mono.Sub(earlier.Mono) + r.Slept - earlier.Slept
}

// Clock makes readings. It asks the system for the boot clock only when the wall clock
// and the monotonic clock have parted since the last time, for only then can the machine
// have slept: a reading is mostly one time.Now. If they parted because somebody set the
// wall clock, the boot clock says so, and nothing follows.
//
// Each client has a clock of its own, so that one made inside testing/synctest sees
// virtual time only.
type Clock struct {
	base time.Time // the first reading; it carries the monotonic and the wall clock
	boot time.Duration

	parted atomic.Int64 // how far the wall clock was ahead of the monotonic one when slept was looked up

	mu    sync.Mutex // held while slept is looked up
	slept atomic.Int64
}

// The clocks part a little by themselves, as NTP slews the wall clock; a sleep is longer
// than this.
const partTolerance = time.Millisecond

// New makes a clock that counts from now.
func New() *Clock { return &Clock{base: time.Now(), boot: sinceBoot()} }

// Now looks at the clocks.
func (c *Clock) Now() Reading {
	t := time.Now()
	parted := t.Round(0).Sub(c.base.Round(0)) - t.Sub(c.base)
	if d := parted - time.Duration(c.parted.Load()); d > partTolerance || d < -partTolerance {
		c.look(parted)
	}
	return Reading{Mono: t, Slept: time.Duration(c.slept.Load())}
}

// look finds how long the machine has slept in all: what the boot clock saw and the
// monotonic one did not.
func (c *Clock) look(parted time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slept := sinceBoot() - c.boot - time.Since(c.base)
	if slept > time.Duration(c.slept.Load())+partTolerance {
		c.slept.Store(int64(slept))
	}
	c.parted.Store(int64(parted))
}
