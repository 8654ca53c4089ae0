package engine_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

func TestCompareReportsEachChangeOnce(t *testing.T) {
	c, token := engine.NewClaims(), driver.NewToken()
	claim := &driver.Claim{Name: "job", Token: token, TTL: time.Minute, QueueTTL: time.Minute}
	queued := []locktable.Waiter{{ClaimInfo: locktable.ClaimInfo{Token: token}}}
	mine := []locktable.Holder{{ClaimInfo: locktable.ClaimInfo{Token: token, Fences: 3}, Fence: 9}}
	retry, lost := driver.Signal{Kind: driver.SignalRetry, Token: token}, driver.Signal{Kind: driver.SignalLost, Token: token}
	granted := driver.Signal{Kind: driver.SignalGranted, Token: token, Fence: 9, Fences: 3}
	wait := func() { c.Acquired(claim, time.Now(), &driver.HeldError{Position: 1, Fence: 8}) }
	wait()
	for _, step := range []struct {
		what   string
		before func()
		entry  locktable.Entry
		want   driver.Signal
	}{
		{"it waits", nil, locktable.Entry{Fence: 8, Queue: queued}, driver.Signal{}},
		{"its name opens by itself", nil, locktable.Entry{Fence: 8, Queue: queued, Closed: 1}, retry},
		{"its name opens at the same time", nil, locktable.Entry{Fence: 8, Queue: queued, Closed: 1}, driver.Signal{}},
		{"its name opens later", nil, locktable.Entry{Fence: 8, Queue: queued, Closed: 2}, retry},
		{"it was granted", nil, locktable.Entry{Fence: 9, Holders: mine}, granted},
		{"it holds", nil, locktable.Entry{Fence: 9, Holders: mine}, driver.Signal{}},
		{"it was broken", nil, locktable.Entry{Fence: 10}, lost},
		{"it waits again, and its place is gone", wait, locktable.Entry{Fence: 10}, retry},
		{"it was granted after that signal", nil, locktable.Entry{Fence: 10, Holders: mine}, granted},
		{"it was granted by a signal", func() { wait(); c.Signaled(granted) }, locktable.Entry{Fence: 9, Holders: mine}, driver.Signal{}},
		{"it got a retry signal", func() { wait(); c.Signaled(retry) }, locktable.Entry{Fence: 9, Holders: mine}, granted},
		{"it gave up", func() { c.Drop(token) }, locktable.Entry{Fence: 9, Holders: mine}, driver.Signal{}},
	} {
		if step.before != nil {
			step.before()
		}
		var want []driver.Signal
		if step.want != (driver.Signal{}) {
			want = []driver.Signal{step.want}
		}
		if got := c.Compare([]engine.Claim{{Token: token}}, &step.entry, time.Now()); !slices.Equal(got, want) {
			t.Errorf("%s: %+v; want %+v", step.what, got, want)
		}
	}
}

// An entry that was requested before the client learned of its grant does not prove a
// loss.
func TestCompareIgnoresAnOutdatedEntry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c, token := engine.NewClaims(), driver.NewToken()
		asked := time.Now()
		time.Sleep(time.Millisecond)
		c.Hold(token, "job", time.Now().Add(time.Minute))
		if signals := c.Compare(c.All(asked), &locktable.Entry{}, asked); len(signals) > 0 {
			t.Errorf("an outdated entry gives the signals %+v", signals)
		}
		if signals := c.Compare(c.All(asked), &locktable.Entry{}, time.Now()); len(signals) != 1 {
			t.Error("a new entry gives no signal of the loss")
		}
	})
}

func TestClaimsDropsAClaimThatEnded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const ttl = 10 * time.Second
		claim := &driver.Claim{Name: "job", Token: driver.NewToken(), TTL: ttl, QueueTTL: ttl}
		lease := driver.LeaseRef{Name: "job", Token: claim.Token, TTL: ttl}
		for what, end := range map[string]func(c *engine.Claims){
			"released":        func(c *engine.Claims) { c.Drop(claim.Token) },
			"refused":         func(c *engine.Claims) { c.Acquired(claim, time.Now(), &driver.HeldError{}) },
			"value not below": func(c *engine.Claims) { c.Acquired(claim, time.Now(), &driver.ValueNotBelowError{}) },
			"not held": func(c *engine.Claims) {
				c.Renewed([]driver.LeaseRef{lease}, time.Now(), []error{driver.ErrNoSuchLease})
			},
			"expired": func(*engine.Claims) { time.Sleep(ttl) },
			"expired while others are added": func(c *engine.Claims) {
				time.Sleep(ttl)
				c.Hold(driver.NewToken(), "other", time.Now())
			},
		} {
			for _, answer := range []error{nil, &driver.HeldError{Position: 1}} {
				c := engine.NewClaims()
				c.Acquired(claim, time.Now(), answer)
				c.Acquired(claim, time.Now(), errors.New("no answer"))
				if all := c.All(time.Now()); len(all) != 1 || all[0].Token != claim.Token || all[0].Name != "job" {
					t.Errorf("All returns %+v; want the claim", all)
				}
				if end(c); c.Any(time.Now()) {
					t.Errorf("%s: the claim is still in Claims", what)
				}
			}
		}
	})
}

// A lease that was granted from the queue lasts as long as the place would have lasted.
func TestALeaseGrantedBySignalLastsAsLongAsItsPlace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := engine.NewClaims()
		claim := &driver.Claim{Name: "job", Token: driver.NewToken(), TTL: time.Hour, QueueTTL: 10 * time.Second}
		c.Acquired(claim, time.Now(), &driver.HeldError{Position: 1})
		c.Signaled(driver.Signal{Kind: driver.SignalGranted, Token: claim.Token})
		time.Sleep(10*time.Second - time.Nanosecond)
		if !c.Any(time.Now()) {
			t.Error("the claim ended too soon")
		}
		if time.Sleep(time.Nanosecond); c.Any(time.Now()) {
			t.Error("the claim lasts too long")
		}
	})
}
