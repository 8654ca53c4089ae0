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
	Slept time.Duration // how long the machine has slept until then
}

// Since is the time from earlier to r, sleep included.
func (r Reading) Since(earlier Reading) time.Duration {
	return r.Mono.Sub(earlier.Mono) + r.Slept - earlier.Slept
}

// Clock makes readings. It reads the boot clock only when the wall clock and the
// monotonic clock have drifted apart since the last time, because only then can the
// machine have slept. So a reading is usually one time.Now. If they differ because an
// operator set the wall clock, the boot clock shows no sleep.
//
// Each client has a clock of its own, so that one made inside testing/synctest sees
// virtual time only.
type Clock struct {
	base time.Time // the first reading; it carries the monotonic and the wall clock
	boot time.Duration

	parted atomic.Int64 // how far the wall clock was ahead of the monotonic one when slept was last measured

	mu    sync.Mutex // held while slept is measured
	slept atomic.Int64
}

// The clocks drift apart a little, because NTP slews the wall clock. A sleep adds more
// than this.
const partTolerance = time.Millisecond

// New makes a clock that counts from now.
func New() *Clock { return &Clock{base: time.Now(), boot: sinceBoot()} }

// Now reads the clocks.
func (c *Clock) Now() Reading {
	t := time.Now()
	parted := t.Round(0).Sub(c.base.Round(0)) - t.Sub(c.base)
	if d := parted - time.Duration(c.parted.Load()); d > partTolerance || d < -partTolerance {
		c.look(parted)
	}
	return Reading{Mono: t, Slept: time.Duration(c.slept.Load())}
}

// look measures how long the machine has slept in all: by how much the boot clock has
// advanced more than the monotonic clock.
func (c *Clock) look(parted time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slept := sinceBoot() - c.boot - time.Since(c.base)
	if slept > time.Duration(c.slept.Load())+partTolerance {
		c.slept.Store(int64(slept))
	}
	c.parted.Store(int64(parted))
}
