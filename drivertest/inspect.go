package drivertest

import (
	"time"

	"github.com/pawl-go/pawl/driver"
)

func testInspect(s *suite) {
	s.test("AnUnknownNameIsAnEmptyEntry", func(k *kit) {
		e := k.a.wantHoldersWaiters(0, 0)
		if e.Name != k.name || e.Fence != 0 || e.ClosedFor != 0 {
			k.Errorf("%+v; want only the name", e)
		}
	})

	s.test("ReadingCreatesNothing", func(k *kit) {
		k.a.entry(k.name)
		if s.canList {
			if got := k.list(k.name); len(got) != 0 {
				k.Errorf("List = %q; want nothing", got)
			}
		}
		k.b.wantGranted(k.mutex())
	})

	s.test("ShowsHoldersAndWaitersAsTheyClaimed", func(k *kit) {
		first := driver.Owner{Client: "c1", Host: "web-1", PID: 1, Labels: map[string]string{"job": "42", "empty": "", "\u00fc {'": "caf\u00e9 \"\\"}}
		second := driver.Owner{Client: "c2", Host: "web-2", PID: 2}
		third := driver.Owner{Client: "c3"}
		before := time.Now()
		g1 := k.a.wantGranted(k.permits(2, 5, owner(first), ttl(2*long)))
		g2 := k.b.wantGranted(k.reader(owner(second)))
		k.a.wantPlace(k.permits(4, 5, owner(third), queue(long)), 1)
		k.b.wantPlace(k.mutex(owner(first), queue(2*long)), 2)

		e := k.b.wantHoldersWaiters(2, 2)
		if e.Name != k.name || e.Fence != g2.Fence || e.ClosedFor != 0 {
			k.Errorf("%+v; want the name, the last fence %d, not closed", e, g2.Fence)
		}
		k.wantSameHolder(e.Holders[0], driver.Holder{Fence: g1.Fence, Permits: 2, Limit: 5, Owner: first, TTL: 2 * long, ExpiresIn: 2 * long})
		k.wantSameHolder(e.Holders[1], driver.Holder{Fence: g2.Fence, Permits: 1, Limit: driver.Unlimited, Owner: second, TTL: long, ExpiresIn: long})
		k.wantSameWaiter(e.Waiters[0], driver.Waiter{Permits: 4, Limit: 5, Owner: third, ExpiresIn: long})
		k.wantSameWaiter(e.Waiters[1], driver.Waiter{Permits: driver.Exclusive, Limit: driver.Unlimited, Owner: first, ExpiresIn: 2 * long})

		now := before
		if k.suite.Clock != nil {
			now = k.suite.Clock.Now()
		}
		// Since is on the server's clock, which may be wrong. But a difference of more
		// than a year means wrong units.
		for _, since := range []time.Time{e.Holders[0].Since, e.Holders[1].Since, e.Waiters[0].Since, e.Waiters[1].Since} {
			if d := since.Sub(now).Abs(); d > 365*24*time.Hour || k.suite.Clock != nil && d >= time.Microsecond {
				k.Errorf("since %v, want %v", since, now)
			}
		}
	})

	s.test("SinceIsTheGrantAndNotTheRenewal", func(k *kit) {
		c := k.mutex()
		k.a.wantGranted(c)
		since := k.b.wantHoldersWaiters(1, 0).Holders[0].Since
		k.advance(k.unit / 4)
		k.a.mustRenew(c)
		k.a.wantGranted(c)
		if again := k.b.wantHoldersWaiters(1, 0).Holders[0].Since; !again.Equal(since) {
			k.Errorf("since %v, after a renewal %v", since, again)
		}
	})

	s.test("SinceOfAWaiterIsItsArrival", func(k *kit) {
		k.a.wantGranted(k.mutex())
		c := k.mutex(queue(long))
		k.b.wantPlace(c, 1)
		since := k.a.wantHoldersWaiters(1, 1).Waiters[0].Since
		k.advance(k.unit / 4)
		k.b.wantPlace(c, 1)
		if again := k.a.wantHoldersWaiters(1, 1).Waiters[0].Since; !again.Equal(since) {
			k.Errorf("since %v, after a repeat %v", since, again)
		}
	})

	s.test("TheTimeLeftRunsDown", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(4 * k.unit)))
		first := k.b.wantHoldersWaiters(1, 0).Holders[0].ExpiresIn
		k.advance(k.unit)
		second := k.b.wantHoldersWaiters(1, 0).Holders[0].ExpiresIn
		if ran := first - second; ran < k.unit/2 || second <= 0 || first > 5*k.unit {
			k.Errorf("%v is left, and %v later %v is left", first, k.unit, second)
		}
	})

	s.test("TheTTLIsTheOneLastAskedFor", func(k *kit) {
		wantTTL := func(c driver.Claim, want time.Duration) {
			k.Helper()
			if got := k.onlyHolder(k.b.entry(c.Name).Holders).TTL; got != want {
				k.Errorf("the TTL of %q is %v, want %v", c.Name, got, want)
			}
			if got := k.b.wantHeld(k.mutex(named(c.Name))).Holder.TTL; got != want {
				k.Errorf("the HeldError has the TTL %v for %q, want %v", got, c.Name, want)
			}
		}
		waitedFor := k.mutex(named(k.nthName(2)))
		for _, c := range []driver.Claim{k.mutex(named(k.nthName(0))), k.reader(named(k.nthName(1))), waitedFor} {
			k.a.wantGranted(c)
			wantTTL(c, long)
			if c.Name == waitedFor.Name {
				k.b.wantPlace(k.mutex(named(c.Name), queue(4*long), ttl(5*long)), 1)
			}
			if err := k.a.renew(c, 2*long); err != nil {
				k.Fatal(err)
			}
			wantTTL(c, 2*long)
			c.TTL = 3 * long
			k.a.wantGranted(c)
			wantTTL(c, 3*long)
			if !k.suite.IsQuorum {
				if err := k.a.renew(c, long); err != nil { // the lease still lasts longer, but has the new TTL
					k.Fatal(err)
				}
				wantTTL(c, long)
			}
		}
	})

	s.test("IsTheCallersOwnCopy", func(k *kit) {
		ownLabels := map[string]string{"job": "42"}
		k.a.wantGranted(k.mutex(owner(driver.Owner{Client: "c", Labels: ownLabels})))
		k.a.wantPlace(k.mutex(queue(long), owner(driver.Owner{Client: "c", Labels: ownLabels})), 1)
		ownLabels["job"] = "changed by the claimer"
		e := k.b.wantHoldersWaiters(1, 1)
		for _, o := range []driver.Owner{e.Holders[0].Owner, e.Waiters[0].Owner} {
			if o.Labels != nil {
				o.Labels["job"] = "changed by the reader"
			}
		}
		e = k.b.wantHoldersWaiters(1, 1)
		for _, o := range []driver.Owner{e.Holders[0].Owner, e.Waiters[0].Owner} {
			if got := o.Labels["job"]; got != "42" {
				k.Errorf("the label is %q, want 42", got)
			}
		}
	})
}

// wantSameHolder compares all fields but Since. ExpiresIn may differ as isAbout allows.
func (k *kit) wantSameHolder(got, want driver.Holder) {
	k.Helper()
	if got.Fence != want.Fence || got.Permits != want.Permits || got.Limit != want.Limit || got.TTL != want.TTL || got.Released != want.Released ||
		!got.Owner.Equal(want.Owner) || !k.isAbout(got.ExpiresIn, want.ExpiresIn) {
		k.Errorf("holder = %+v\nwant     %+v", got, want)
	}
}

// wantSameWaiter is wantSameHolder for a waiter.
func (k *kit) wantSameWaiter(got, want driver.Waiter) {
	k.Helper()
	if got.Permits != want.Permits || got.Limit != want.Limit || !got.Owner.Equal(want.Owner) || !k.isAbout(got.ExpiresIn, want.ExpiresIn) {
		k.Errorf("waiter = %+v\nwant     %+v", got, want)
	}
}

// isAbout compares two times: exactly with an injected clock, and otherwise with a
// tolerance of a quarter.
func (k *kit) isAbout(got, want time.Duration) bool {
	if k.suite.Clock != nil {
		return got == want
	}
	return got > want-want/4 && got < want+want/4
}
