package drivertest

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// suite is one topic under test.
type suite struct {
	*testing.T
	Harness
	properties driver.Properties

	breaks, lists, signals, diagnoses bool // what the driver can do

	timeless bool // being late is no excuse, see late.go
}

// parallel lets t run beside the others where time is real and waited for. An injected
// clock is moved for all at once, so there one goes after the other.
func (s *suite) parallel(t *testing.T) {
	if s.Clock == nil {
		t.Parallel()
	}
}

// test runs f as a subtest with two clients and a name of its own.
func (s *suite) test(name string, f func(k *kit)) {
	s.Run(name, func(t *testing.T) {
		s.parallel(t)
		if s.Clock != nil || s.timeless {
			f(newKit(t, s, s.Unit))
			return
		}
		s.attempt(t, f)
	})
}

// exact is test for what happens at an instant, which can only be looked at where the
// clock stands still.
func (s *suite) exact(name string, f func(k *kit)) {
	if s.Clock != nil {
		s.test(name, f)
	}
}

// kit is what a subtest works with.
type kit struct {
	*testing.T
	s    *suite
	ctx  context.Context
	u    time.Duration // Harness.Unit, or longer, see late.go
	name string        // that nobody else uses
	a, b *client       // two clients that share nothing but the backend

	mu     sync.Mutex // protects claims
	claims []driver.Claim

	notes *notes // nil with an injected clock
	began time.Time
	asked atomic.Int64 // how much time the subtest let pass, in ns
}

// run and serial make names that no other subtest, and no earlier run on the same server,
// has used.
var (
	run    = rand.Text()[:8]
	serial atomic.Int64
)

func newKit(t *testing.T, s *suite, u time.Duration) *kit {
	// A driver never waits; one that does, or that loses a waiter, must not hang the
	// suite.
	limit := 12 * s.Patience
	if s.Clock == nil {
		limit += 20 * u
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	k := &kit{T: t, s: s, ctx: ctx, u: u, began: time.Now(), name: fmt.Sprintf("drivertest-%s-%d:", run, serial.Add(1))}
	k.a, k.b = k.open(), k.open()

	if s.Clock == nil {
		t.Cleanup(k.leave)
	}
	return k
}

// remember notes a claim, so that a server that is shared with others is left as it was
// found. Where the clock is injected the backend is ours alone, and what is left in it
// does not matter.
func (k *kit) remember(c driver.Claim) {
	if k.s.Clock == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.claims = append(k.claims, c)
	}
}

// leave gives back what may still be held, or waited for.
func (k *kit) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.claims {
		_ = k.b.Driver.Release(ctx, driver.LeaseRef{Name: c.Name, Token: c.Token})
	}
}

// open opens one more client.
func (k *kit) open() *client {
	k.Helper()
	d := k.s.Open(k.T)
	k.Cleanup(func() {
		if err := d.Close(); err != nil {
			k.T.Errorf("Close: %v", err)
		}
	})
	return &client{Driver: d, k: k}
}

// past lets d go by: exactly, where the clock is injected, or a little more.
func (k *kit) past(d time.Duration) {
	if k.s.Clock != nil {
		k.s.Clock.Advance(d)
		return
	}
	k.sleep(d + k.u/4)
}

// pass lets about d go by, for what must not have changed yet.
func (k *kit) pass(d time.Duration) {
	if k.s.Clock != nil {
		k.s.Clock.Advance(d)
		return
	}
	k.sleep(d)
}

func (k *kit) sleep(d time.Duration) {
	k.Helper()
	k.asked.Add(int64(d))
	select {
	case <-time.After(d):
	case <-k.ctx.Done():
		k.Fatal(context.Cause(k.ctx))
	}
}

// instant is the smallest step of every backend's clock.
const instant = time.Microsecond
