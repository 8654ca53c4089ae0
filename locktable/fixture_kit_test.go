package locktable_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A fixture is one entry on a clock that a test moves. It runs the methods of the entry,
// and after each step fails the test if a rule is broken: see rules_kit_test.go. So each
// unit test, property and fuzz input checks all rules at each of its steps.
type fixture struct {
	t         tb
	entry     *locktable.Entry
	now       locktable.Instant
	lastFence uint64 // the highest fence that was ever granted
}

// tb has the methods that testing.T, testing.F and rapid.T share.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

const (
	ms   = time.Millisecond
	sec  = time.Second
	ttl  = 30 * sec // of the claims below
	wait = 10 * sec // their QueueTTL
	µs   = time.Microsecond
)

var start = locktable.At(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func newFixture(t tb) *fixture { return &fixture{t: t, entry: &locktable.Entry{}, now: start} }

// These functions return the claims of the tests. The name of a claimant is also its
// token, its inbox and its owner, so that messages are readable.
func mutex(who string) *driver.Claim  { return permits(who, driver.Exclusive, driver.Unlimited) }
func reader(who string) *driver.Claim { return permits(who, 1, driver.Unlimited) }

func permits(who string, k, n int) *driver.Claim {
	return &driver.Claim{
		Name: "job", Token: tokenOf(who), Owner: driver.Owner{Client: who},
		Weight: k, Limit: n, TTL: ttl, QueueTTL: wait, Queue: true,
	}
}

func tokenOf(who string) (t driver.Token) {
	copy(t[:], who)
	return t
}

func try(c *driver.Claim) *driver.Claim {
	c.Queue, c.QueueTTL = false, 0
	return c
}

func withForce(c *driver.Claim) *driver.Claim {
	c.Force = true
	return c
}

func with(c *driver.Claim, f func(c *driver.Claim)) *driver.Claim {
	f(c)
	return c
}

func tokenName(t driver.Token) string {
	if t.IsZero() {
		return "nobody"
	}
	return strings.TrimRight(string(t[:]), "\x00")
}

// sleep moves the clock, forward or back, and runs no step.
func (fx *fixture) sleep(d time.Duration) {
	fx.now += locktable.Instant(d / time.Microsecond)
}

func (fx *fixture) acquire(c *driver.Claim) (driver.Grant, error) {
	fx.t.Helper()
	var grant driver.Grant
	var err error
	fx.step(action{kind: "acquire", token: c.Token, force: c.Force, hasTicket: c.Ticket != 0, ttl: c.TTL, value: c.Value, conditional: c.ValueBelow != nil}, func() { grant, err = fx.entry.Acquire(fx.now, c, tokenName(c.Token)) })
	h := fx.holder(c.Token)
	held, _ := errors.AsType[*driver.HeldError](err)
	switch {
	case errors.Is(err, driver.ErrValueNotBelow):
		fx.checkValueError(c, err)
		return grant, err
	case held == nil && h == nil:
		fx.t.Fatalf("%s was granted fence %d, but has no lease", tokenName(c.Token), grant.Fence)
	case held == nil && (h.Fence != grant.Fence || h.Fences != grant.Fences || grant.Fences < 1 || h.Expires < fx.now.Add(grant.TTL)):
		fx.t.Fatalf("%s was granted %+v, but its lease is %+v", tokenName(c.Token), grant, *h)
	case held != nil && h != nil:
		fx.t.Fatalf("%s was refused, but has a lease", tokenName(c.Token))
	case held != nil:
		fx.checkHeld(c, held)
	}
	return grant, err
}

func (fx *fixture) renew(who string, d time.Duration) error {
	fx.t.Helper()
	return fx.renewRef(driver.LeaseRef{Token: tokenOf(who), TTL: d})
}

func (fx *fixture) renewRef(r driver.LeaseRef) error {
	fx.t.Helper()
	var err error
	who, d := tokenName(r.Token), r.TTL
	fx.step(action{kind: "renew", token: r.Token, ttl: r.TTL, value: r.Value}, func() { err = fx.entry.Renew(fx.now, &r) })
	if h := fx.holder(tokenOf(who)); (err == nil) != (h != nil) || h != nil && h.Expires < fx.now.Add(d) {
		fx.t.Fatalf("the renewal by %s returned %v, but its lease is now %+v", who, err, h)
	}
	return err
}

func (fx *fixture) release(who string, minHold time.Duration) error {
	fx.t.Helper()
	return fx.releaseRef(driver.LeaseRef{Token: tokenOf(who), MinHold: minHold})
}

func (fx *fixture) releaseRef(r driver.LeaseRef) error {
	fx.t.Helper()
	var err error
	who := tokenName(r.Token)
	fx.step(action{kind: "release", token: r.Token, value: r.Value}, func() { err = fx.entry.Release(fx.now, &r) })
	if fx.holder(tokenOf(who)) != nil || fx.place(who) != 0 {
		fx.t.Fatalf("%s released, but still holds or waits", who)
	}
	return err
}

func (fx *fixture) breakLease(fence uint64, delay time.Duration, by string) error {
	fx.t.Helper()
	var err error
	fx.step(action{kind: "break", fence: fence}, func() { err = fx.entry.Break(fx.now, fence, delay, driver.Owner{Client: by}) })
	return err
}

func (fx *fixture) holder(token driver.Token) *locktable.Holder {
	for i, h := range fx.entry.Holders {
		if h.Token == token && !token.IsZero() {
			return &fx.entry.Holders[i]
		}
	}
	return nil
}

// place returns the position of a claimant in the queue, from 1; 0 means none.
func (fx *fixture) place(who string) int {
	return 1 + slices.IndexFunc(fx.entry.Queue, func(w locktable.Waiter) bool { return w.Token == tokenOf(who) })
}

// The methods that begin with want are the expectations of unit tests.

func (fx *fixture) wantGranted(c *driver.Claim) driver.Grant {
	fx.t.Helper()
	g, err := fx.acquire(c)
	if err != nil {
		fx.t.Fatalf("%s is refused: %v", tokenName(c.Token), err)
	}
	return g
}

func (fx *fixture) wantHeld(c *driver.Claim) *driver.HeldError {
	fx.t.Helper()
	g, err := fx.acquire(c)
	held, ok := errors.AsType[*driver.HeldError](err)
	if !ok {
		fx.t.Fatalf("%s got fence %d, or the error %v; want a HeldError", tokenName(c.Token), g.Fence, err)
	}
	return held
}

func (fx *fixture) wantNoError(err error) {
	fx.t.Helper()
	if err != nil {
		fx.t.Fatalf("error %v, want none", err)
	}
}

func (fx *fixture) wantNoLease(err error) {
	fx.t.Helper()
	if !errors.Is(err, driver.ErrNoSuchLease) {
		fx.t.Fatalf("error %v, want ErrNoSuchLease", err)
	}
}

func (fx *fixture) wantSignals(want string) {
	fx.t.Helper()
	var got []string
	for _, s := range fx.entry.Signals {
		got = append(got, map[driver.SignalKind]string{
			driver.SignalGranted: "granted ", driver.SignalLost: "lost ", driver.SignalRetry: "retry ", locktable.SignalChanged: "changed ",
		}[s.Kind]+s.Inbox)
	}
	if got := strings.Join(got, ", "); got != want {
		fx.t.Fatalf("signals are %q, want %q", got, want)
	}
}

func equal[T comparable](t tb, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// runEach runs a table of subtests, each with a new fixture.
func runEach(t *testing.T, tests map[string]func(fx *fixture)) {
	t.Helper()
	for name, f := range tests {
		t.Run(name, func(t *testing.T) { f(newFixture(t)) })
	}
}

func entryText(e *locktable.Entry) string { return fmt.Sprintf("%+v", *e) }

// heldOf returns the HeldError of Acquire's results, or nil.
func heldOf(_ driver.Grant, err error) *driver.HeldError {
	held, _ := errors.AsType[*driver.HeldError](err)
	return held
}

func brokenBy(t tb, err error) *driver.BrokenError {
	t.Helper()
	var broken *driver.BrokenError
	if !errors.As(err, &broken) {
		t.Fatalf("error %v, want a BrokenError", err)
	}
	return broken
}

// entryWithWaiters returns an entry with a holder that has labels, and n waiters.
func entryWithWaiters(n int) *locktable.Entry {
	e := &locktable.Entry{}
	for i := range n + 1 {
		c := mutex(fmt.Sprint("client", i))
		c.Owner = driver.Owner{Client: "d41d8cd98f00b204", Host: "web-3.example.com", PID: 4711}
		if i == 0 {
			c.Owner.Labels = map[string]string{"job": "42", "team": "billing"}
		}
		_, _ = e.Acquire(start, c, "1f3870be274f6c49")
	}
	return e
}
