package drivertest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// kit has the tools of a subtest: its clients, its clock and its checks.
type kit struct {
	*testing.T
	s     *suite
	ctx   context.Context
	whole context.Context // ctx of the whole subtest; ctx may be for one case of many
	until atomic.Int64    // when the subtest has to have ended, in ns since 1970
	u     time.Duration   // Harness.Unit, or longer, see late.go
	name  string          // that no other subtest uses
	a, b  *client         // two clients that share nothing but the backend

	claims sync.Map // those that may still hold or wait, by token and name

	notes    *notes
	began    time.Time
	ownWaits atomic.Int64 // the time that the subtest let pass on purpose, in ns
	answered atomic.Int64 // when the last Acquire returned, in ns since began
}

// run and serial make names that no other subtest, and no earlier run on the same server,
// has used.
var (
	run    = rand.Text()[:8]
	serial atomic.Int64
)

func newKit(t *testing.T, s *suite, u time.Duration) *kit {
	ctx, cancel := s.bound(t, u)
	t.Cleanup(cancel)
	k := &kit{T: t, s: s, ctx: ctx, whole: ctx, u: u, notes: &notes{}, began: time.Now(), name: fmt.Sprintf("drivertest-%s-%d:", run, serial.Add(1))}
	k.setDeadline(ctx)
	k.a, k.b = k.open(), k.open()

	if s.Clock == nil {
		t.Cleanup(k.releaseClaims)
	}
	return k
}

// bound is the ctx of one subtest, or of one case of many. A driver must not wait; one
// that does, or that loses a waiter, must not hang the suite.
func (s *suite) bound(t *testing.T, u time.Duration) (context.Context, context.CancelFunc) {
	limit := 12*s.Patience + min(48*s.Patience, 4*time.Minute) // some take hundreds of steps, on machines that are busy
	switch {
	case s.name == basics && s.Clock != nil:
		limit = 2 * s.Patience
	case s.name == basics:
		limit = 2*s.Patience + 4*u
	case s.Clock == nil:
		limit += 20 * u
		if s.isFar() {
			limit += min(400*time.Duration(s.trip.Load()), 2*time.Minute)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	go func() {
		select {
		case <-s.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// isFar reports whether a grant takes so long that the cause is the link, and not the
// machine.
func (s *suite) isFar() bool { return s.Clock == nil && s.trip.Load() > int64(100*time.Millisecond) }

// fewer returns the number of rounds or names to use instead of n: a tenth if the backend
// is far away.
func (s *suite) fewer(n int) int {
	if s.isFar() {
		return max(n/10, 1)
	}
	return n
}

// expects sets the time by which the subtest must have ended: the deadline of ctx.
func (k *kit) setDeadline(ctx context.Context) {
	end, _ := ctx.Deadline()
	k.until.Store(end.UnixNano())
}

// remember notes a claim, so that the suite can release it at the end, on a server that
// is shared with others. With an injected clock the backend is the test's own, and needs
// no clean-up.
func (k *kit) remember(c driver.Claim) {
	if k.s.Clock == nil {
		k.claims.Store(string(c.Token[:])+c.Name, driver.LeaseRef{Name: c.Name, Token: c.Token})
	}
}

// leave releases the claims that may still hold or wait. A driver that does not return
// must not hang the suite here, either.
func (k *kit) releaseClaims() {
	limit := 10 * time.Second
	if k.whole.Err() != nil { // calls do not return
		limit = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	left := make(chan struct{})
	go func() {
		defer close(left)
		defer cancel()
		for _, l := range k.claims.Range {
			_ = k.b.Driver.Release(ctx, l.(driver.LeaseRef)) // remember stores nothing else
		}
	}()
	select {
	case <-left:
	case <-ctx.Done():
	}
}

// open opens one more client.
func (k *kit) open() *client {
	k.Helper()
	return k.addClient(k.s.Open(k.T))
}

// with makes a client of a driver, and closes it in the end.
func (k *kit) addClient(d driver.Driver) *client {
	k.Helper()
	k.Cleanup(func() {
		if err := d.Close(); err != nil {
			k.T.Errorf("Close: %v", err)
		}
	})
	return &client{Driver: d, k: k}
}

// past lets d go by: exactly, if the clock is injected; otherwise a little more.
func (k *kit) advancePast(d time.Duration) {
	if k.s.Clock != nil {
		k.s.Clock.Advance(d)
		return
	}
	k.sleep(d + k.u/4 + k.s.Uncertainty)
}

// pass lets about d go by, before a check that something has not changed yet.
func (k *kit) advance(d time.Duration) {
	if k.s.Clock != nil {
		k.s.Clock.Advance(d)
		return
	}
	k.sleep(d)
}

func (k *kit) sleep(d time.Duration) {
	k.Helper()
	k.ownWaits.Add(int64(d))
	select {
	case <-time.After(d):
	case <-k.ctx.Done():
		k.Fatal(context.Cause(k.ctx))
	}
}

// instant is the smallest step of every backend's clock.
const instant = time.Microsecond

// one wants a single holder.
func (k *kit) onlyHolder(holders []driver.Holder) driver.Holder {
	k.Helper()
	if len(holders) != 1 {
		k.Fatalf("%d holders, want one: %+v", len(holders), holders)
	}
	return holders[0]
}

// nth makes a name of its own for the i-th of several.
func (k *kit) nth(i int) string { return fmt.Sprintf("%s/%05d", k.name, i) }

// line puts n mutexes into the queue of the kit's name, alternately from both clients.
func (k *kit) queueMutexes(n int) []driver.Claim {
	k.Helper()
	var out []driver.Claim
	for i := range n {
		c := k.mutex(queue(long))
		[]*client{k.a, k.b}[i%2].wantPlace(c, i+1)
		out = append(out, c)
	}
	return out
}

// closes closes a client.
func (k *kit) mustClose(d *client) {
	k.Helper()
	if err := d.Close(); err != nil {
		k.Fatalf("Close: %v", err)
	}
}

// list reads the names that start with prefix.
func (k *kit) list(prefix string) []string {
	k.Helper()
	var got []string
	for e, err := range k.b.Driver.(driver.Lister).List(k.ctx, prefix) {
		if err != nil {
			k.Fatalf("List(%q): %v", prefix, err)
		}
		got = append(got, e.Name)
	}
	return got
}

// listErr is the error with which a listing ends.
func (k *kit) listErr(ctx context.Context, d *client) (last error) {
	k.Helper()
	for _, err := range d.Driver.(driver.Lister).List(ctx, k.name) {
		if last != nil {
			k.Errorf("List went on after the error %v", last)
		}
		last = err
	}
	return last
}

// brokenBy wants the answer to a renewal to name the owner who broke the lease.
func (k *kit) wantBrokenBy(err error, who driver.Owner) *driver.BrokenError {
	k.Helper()
	var broken *driver.BrokenError
	if !errors.As(err, &broken) || !errors.Is(err, driver.ErrNoSuchLease) {
		k.Fatalf("%v (%T); want a *driver.BrokenError", err, err)
	}
	if !broken.By.Equal(who) {
		k.Fatalf("broken by %+v, want %+v", broken.By, who)
	}
	return broken
}

// refusedAsInvalid wants err to say what was wrong with the input. The test goes on with
// the next input.
func (k *kit) wantInvalid(what string, err error) {
	k.Helper()
	var invalid *driver.InvalidError
	switch {
	case err == nil:
		k.Errorf("%s was accepted", what)
	case errors.Is(err, driver.ErrHeld), errors.Is(err, driver.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		k.Errorf("%s reached the backend: %v", what, err)
	case !errors.Is(err, driver.ErrInvalid) || !errors.As(err, &invalid):
		k.Errorf("%s: %v (%T); want a *driver.InvalidError", what, err, err)
	}
}
