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

// A lab is one entry on a clock that a test moves. The lab runs every method of the
// entry, checks the entry before and after, and fails the test when a rule is broken: see
// laws_kit_test.go. So each unit test, property and fuzz input checks all rules at each
// of its steps.
type lab struct {
	t   tb
	e   *locktable.Entry
	now locktable.Instant
	top uint64 // the highest fence that was ever granted
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

func newLab(t tb) *lab { return &lab{t: t, e: &locktable.Entry{}, now: start} }

// The claims of the tests. The name of a claimant is also its token, its inbox and its
// owner, so that messages are readable.
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

func forced(c *driver.Claim) *driver.Claim {
	c.Force = true
	return c
}

func with(c *driver.Claim, f func(c *driver.Claim)) *driver.Claim {
	f(c)
	return c
}

func whose(t driver.Token) string {
	if t.IsZero() {
		return "nobody"
	}
	return strings.TrimRight(string(t[:]), "\x00")
}

// sleep moves the clock, also backwards. Nothing happens by itself.
func (l *lab) sleep(d time.Duration) {
	l.now += locktable.Instant(d / time.Microsecond)
}

func (l *lab) acquire(c *driver.Claim) (driver.Grant, error) {
	l.t.Helper()
	var grant driver.Grant
	var err error
	l.step(act{what: "acquire", token: c.Token, force: c.Force, early: c.Ticket != 0, ttl: c.TTL, value: c.Value, conditional: c.ValueBelow != nil}, func() { grant, err = l.e.Acquire(l.now, c, whose(c.Token)) })
	h := l.holder(c.Token)
	held, _ := errors.AsType[*driver.HeldError](err)
	switch {
	case errors.Is(err, driver.ErrValueNotBelow):
		l.checkValueError(c, err)
		return grant, err
	case held == nil && h == nil:
		l.t.Fatalf("%s was granted fence %d, and does not hold", whose(c.Token), grant.Fence)
	case held == nil && (h.Fence != grant.Fence || h.Fences != grant.Fences || grant.Fences < 1 || h.Expires < l.now.Add(grant.TTL)):
		l.t.Fatalf("%s was told %+v, and holds %+v", whose(c.Token), grant, *h)
	case held != nil && h != nil:
		l.t.Fatalf("%s was refused, and holds", whose(c.Token))
	case held != nil:
		l.checkHeld(c, held)
	}
	return grant, err
}

func (l *lab) renew(who string, d time.Duration) error {
	l.t.Helper()
	return l.renews(driver.LeaseRef{Token: tokenOf(who), TTL: d})
}

func (l *lab) renews(r driver.LeaseRef) error {
	l.t.Helper()
	var err error
	who, d := whose(r.Token), r.TTL
	l.step(act{what: "renew", token: r.Token, ttl: r.TTL, value: r.Value}, func() { err = l.e.Renew(l.now, &r) })
	if h := l.holder(tokenOf(who)); (err == nil) != (h != nil) || h != nil && h.Expires < l.now.Add(d) {
		l.t.Fatalf("renewal by %s is answered %v, and its lease is now %+v", who, err, h)
	}
	return err
}

func (l *lab) release(who string, minHold time.Duration) error {
	l.t.Helper()
	return l.releases(driver.LeaseRef{Token: tokenOf(who), MinHold: minHold})
}

func (l *lab) releases(r driver.LeaseRef) error {
	l.t.Helper()
	var err error
	who := whose(r.Token)
	l.step(act{what: "release", token: r.Token, value: r.Value}, func() { err = l.e.Release(l.now, &r) })
	if l.holder(tokenOf(who)) != nil || l.place(who) != 0 {
		l.t.Fatalf("%s released, and still holds or waits", who)
	}
	return err
}

func (l *lab) breaks(fence uint64, delay time.Duration, by string) error {
	l.t.Helper()
	var err error
	l.step(act{what: "break", fence: fence}, func() { err = l.e.Break(l.now, fence, delay, driver.Owner{Client: by}) })
	return err
}

func (l *lab) holder(token driver.Token) *locktable.Holder {
	for i, h := range l.e.Holders {
		if h.Token == token && !token.IsZero() {
			return &l.e.Holders[i]
		}
	}
	return nil
}

// place is the position in the queue, from 1; 0 is not in it.
func (l *lab) place(who string) int {
	return 1 + slices.IndexFunc(l.e.Queue, func(w locktable.Waiter) bool { return w.Token == tokenOf(who) })
}

// The methods below are the expectations of unit tests.

func (l *lab) granted(c *driver.Claim) driver.Grant {
	l.t.Helper()
	g, err := l.acquire(c)
	if err != nil {
		l.t.Fatalf("%s is refused: %v", whose(c.Token), err)
	}
	return g
}

func (l *lab) refused(c *driver.Claim) *driver.HeldError {
	l.t.Helper()
	g, err := l.acquire(c)
	held, ok := errors.AsType[*driver.HeldError](err)
	if !ok {
		l.t.Fatalf("%s is granted fence %d, or told %v", whose(c.Token), g.Fence, err)
	}
	return held
}

func (l *lab) ok(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatalf("error %v, want none", err)
	}
}

func (l *lab) notHeld(err error) {
	l.t.Helper()
	if !errors.Is(err, driver.ErrNoSuchLease) {
		l.t.Fatalf("error %v, want ErrNoSuchLease", err)
	}
}

func (l *lab) said(want string) {
	l.t.Helper()
	var got []string
	for _, s := range l.e.Signals {
		got = append(got, map[driver.SignalKind]string{
			driver.SignalGranted: "granted ", driver.SignalLost: "lost ", driver.SignalRetry: "retry ", locktable.SignalChanged: "changed ",
		}[s.Kind]+s.Inbox)
	}
	if got := strings.Join(got, ", "); got != want {
		l.t.Fatalf("signals are %q, want %q", got, want)
	}
}

func equal[T comparable](t tb, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// each runs a table of contracts, every one on a lab of its own.
func each(t *testing.T, contracts map[string]func(l *lab)) {
	t.Helper()
	for name, f := range contracts {
		t.Run(name, func(t *testing.T) { f(newLab(t)) })
	}
}

func show(e *locktable.Entry) string { return fmt.Sprintf("%+v", *e) }

// heldOf is the refusal because of others; nil for a grant.
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

// crowd is an entry with a holder, who has labels, and n waiters.
func crowd(n int) *locktable.Entry {
	l := &locktable.Entry{}
	for i := range n + 1 {
		c := mutex(fmt.Sprint("client", i))
		c.Owner = driver.Owner{Client: "d41d8cd98f00b204", Host: "web-3.example.com", PID: 4711}
		if i == 0 {
			c.Owner.Labels = map[string]string{"job": "42", "team": "billing"}
		}
		_, _ = l.Acquire(start, c, "1f3870be274f6c49")
	}
	return l
}
