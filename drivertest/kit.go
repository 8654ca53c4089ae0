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
	suite      *suite
	ctx        context.Context
	subtestCtx context.Context // the ctx of the subtest; ctx may be that of one random case
	deadline   atomic.Int64    // of the subtest, in ns since 1970
	unit       time.Duration   // Harness.Unit, or longer, see late.go
	name       string          // a name that no other subtest uses
	a, b       *client         // two clients that share only the backend

	claims sync.Map // the claims that may still hold or wait, by token and name

	failureLog      *failureLog
	began           time.Time
	clockLagAtBegin time.Duration // Harness.ClockLag when the subtest began
	ownWaits        atomic.Int64  // the time of the subtest's deliberate waits, in ns
	lastAnswerAt    atomic.Int64  // the time at which the last Acquire returned, in ns since began
}

// runID and serial make names that no other subtest and no earlier run on the same server
// has used.
var (
	runID  = rand.Text()[:8]
	serial atomic.Int64
)

func newKit(t *testing.T, s *suite, u time.Duration) *kit {
	ctx, cancel := s.caseContext(t, u)
	t.Cleanup(cancel)
	k := &kit{T: t, suite: s, ctx: ctx, subtestCtx: ctx, unit: u, failureLog: &failureLog{}, began: time.Now(), name: fmt.Sprintf("drivertest-%s-%d:", runID, serial.Add(1))}
	if s.ClockLag != nil {
		k.clockLagAtBegin = s.ClockLag()
	}
	k.setDeadline(ctx)
	k.a, k.b = k.open(), k.open()

	if s.Clock == nil {
		t.Cleanup(k.releaseClaims)
	}
	return k
}

// caseContext returns the ctx of one subtest, or of one random case. A driver that waits,
// or loses a waiter, must not hang the suite.
func (s *suite) caseContext(t *testing.T, u time.Duration) (context.Context, context.CancelFunc) {
	limit := 12*s.Patience + min(48*s.Patience, 4*time.Minute) // some take hundreds of steps, on a busy machine
	switch {
	case s.name == basics && s.Clock != nil:
		limit = 2 * s.Patience
	case s.name == basics:
		limit = 2*s.Patience + 4*u
	case s.Clock == nil:
		limit += 20 * u
		if s.isFar() {
			limit += min(400*time.Duration(s.fastestGrant.Load()), 2*time.Minute)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	go func() {
		select {
		case <-s.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// isFar reports whether grants are slow because of the network, and not the machine.
func (s *suite) isFar() bool {
	return s.Clock == nil && s.fastestGrant.Load() > int64(100*time.Millisecond)
}

// fewerIfFar returns the number of rounds or names to use: n, or a tenth of n if the
// backend is far away.
func (s *suite) fewerIfFar(n int) int {
	if s.isFar() {
		return max(n/10, 1)
	}
	return n
}

// setDeadline sets the time by which the subtest must have ended: the deadline of ctx.
func (k *kit) setDeadline(ctx context.Context) {
	end, _ := ctx.Deadline()
	k.deadline.Store(end.UnixNano())
}

// recordClaim records a claim, so that the suite can release it at the end, because other
// tests may share the server. With an injected clock the backend is only for the test,
// and needs no clean-up.
func (k *kit) recordClaim(c driver.Claim) {
	if k.suite.Clock == nil {
		k.claims.Store(string(c.Token[:])+c.Name, driver.LeaseRef{Name: c.Name, Token: c.Token})
	}
}

// releaseClaims releases the claims that may still hold or wait, but waits no longer than
// its limit, because a driver may hang.
func (k *kit) releaseClaims() {
	limit := 10 * time.Second
	if k.subtestCtx.Err() != nil { // the driver hangs
		limit = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	released := make(chan struct{})
	go func() {
		defer close(released)
		defer cancel()
		for _, l := range k.claims.Range {
			_ = k.b.Driver.Release(ctx, l.(driver.LeaseRef)) // always a LeaseRef
		}
	}()
	select {
	case <-released:
	case <-ctx.Done():
	}
}

// open opens another client.
func (k *kit) open() *client {
	k.Helper()
	return k.addClient(k.suite.Open(k.T))
}

// addClient makes a client of a driver, and closes it at the end.
func (k *kit) addClient(d driver.Driver) *client {
	k.Helper()
	k.Cleanup(func() {
		if err := d.Close(); err != nil {
			k.T.Errorf("Close: %v", err)
		}
	})
	return &client{Driver: d, k: k}
}

// advancePast lets d pass: exactly with an injected clock, and otherwise a little more.
func (k *kit) advancePast(d time.Duration) {
	if k.suite.Clock != nil {
		k.suite.Clock.Advance(d)
		return
	}
	k.sleep(d + k.unit/4 + k.suite.Uncertainty)
}

// advance lets d pass, before a check that nothing has changed yet.
func (k *kit) advance(d time.Duration) {
	if k.suite.Clock != nil {
		k.suite.Clock.Advance(d)
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

// clockStep is the smallest step of every backend's clock.
const clockStep = time.Microsecond

// onlyHolder requires a single holder, and returns it.
func (k *kit) onlyHolder(holders []driver.Holder) driver.Holder {
	k.Helper()
	if len(holders) != 1 {
		k.Fatalf("%d holders, want one: %+v", len(holders), holders)
	}
	return holders[0]
}

// nthName returns the i-th of several names.
func (k *kit) nthName(i int) string { return fmt.Sprintf("%s/%05d", k.name, i) }

// queueMutexes queues n exclusive claims for the kit's name, alternately from both
// clients.
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

// mustClose closes a client.
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

// listErr returns the error with which List ends.
func (k *kit) listErr(ctx context.Context, d *client) (last error) {
	k.Helper()
	for _, err := range d.Driver.(driver.Lister).List(ctx, k.name) {
		if last != nil {
			k.Errorf("List continued after the error %v", last)
		}
		last = err
	}
	return last
}

// wantBrokenBy requires that the answer to a renewal names the breaker.
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

// wantInvalid requires an InvalidError. If it fails, the test continues with the next
// input.
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
