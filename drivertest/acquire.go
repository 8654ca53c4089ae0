package drivertest

import (
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
)

func testAcquire(s *suite) {
	s.test("TheSecondIsRefusedAndTheErrorNamesTheHolder", func(k *kit) {
		who := basictest.FullOwner()
		g := k.a.wantGranted(k.mutex(owner(who)))
		held := k.b.wantHeld(k.mutex())
		if held.Holders != 1 || held.Position != 0 || held.ClosedFor != 0 {
			k.Fatalf("%+v; want one holder, no place and not closed", held)
		}
		h := held.Holder
		if h.Fence != g.Fence || h.Permits != driver.Exclusive || h.Limit != driver.Unlimited || h.Released {
			k.Errorf("holder = %+v; want the fence %d, an exclusive lease", h, g.Fence)
		}
		if !h.Owner.Equal(who) {
			k.Errorf("holder's owner = %+v, want %+v", h.Owner, who)
		}
		if h.ExpiresIn <= long/2 {
			k.Errorf("holder expires in %v, want %v", h.ExpiresIn, long)
		}
	})

	s.test("ARefusalSaysWhichFenceWasGrantedLast", func(k *kit) {
		// So a waiter can distinguish an outdated grant signal from the one that it waits
		// for.
		c := k.permits(1, 2)
		first := k.a.wantGranted(c)
		if held := k.b.wantHeld(k.mutex()); held.Fence != first.Fence {
			k.Errorf("HeldError.Fence = %d, want %d", held.Fence, first.Fence)
		}
		second := k.a.wantGranted(k.permits(1, 2))
		k.a.mustRelease(c)
		if held := k.b.wantPlace(k.mutex(queue(long)), 1); held.Fence != second.Fence {
			k.Errorf("HeldError.Fence = %d, want %d", held.Fence, second.Fence)
		}
	})

	s.test("RepeatedAfterALostReplyAnswersWithTheSameGrant", func(k *kit) {
		c := k.mutex(fences(4))
		first := k.a.wantGranted(c)
		for _, d := range []*client{k.a, k.b} { // the token identifies the claim, whichever client sends it
			if again := d.wantGranted(c); again.Fence != first.Fence || again.Fences != first.Fences {
				k.Fatalf("the repeat got %+v, the first %+v", again, first)
			}
		}
		k.b.wantFences(first.Fence)
		k.b.mustRelease(c)
		k.b.wantHoldersWaiters(0, 0)
	})

	s.test("RepeatedByOneOfSeveralHoldersTakesNothingMore", func(k *kit) {
		c, other := k.permits(1, 2), k.permits(1, 2)
		first := k.a.wantGranted(c)
		if again := k.a.wantGranted(c); again.Fence != first.Fence {
			k.Fatalf("the repeat got the fence %d, the first %d", again.Fence, first.Fence)
		}
		k.b.wantGranted(other)
		if again := k.a.wantGranted(c); again.Fence != first.Fence { // even if no other claim would fit
			k.Fatalf("the repeat got the fence %d, the first %d", again.Fence, first.Fence)
		}
		k.b.wantHoldersWaiters(2, 0)
	})

	s.test("RepeatedRunsForAFullTTLFromTheRepeat", func(k *kit) {
		c := k.mutex(ttl(2 * k.unit))
		k.a.wantGranted(c)
		k.advance(k.unit)
		k.a.wantGranted(c)
		k.advance(k.unit + k.unit/4)
		k.b.wantHeld(k.mutex())
		k.advancePast(k.unit)
		k.b.wantGranted(k.mutex())
	})

	s.test("TheSameOwnerIsNotLetInTwice", func(k *kit) {
		who := driver.Owner{Client: "one", Host: "web-1", PID: 1}
		k.a.wantGranted(k.mutex(owner(who)))
		k.a.wantHeld(k.mutex(owner(who)))
	})

	s.test("EachAcquisitionHasAnIdentityOfItsOwn", func(k *kit) {
		first, second := k.permits(1, 3), k.permits(1, 3)
		f1, f2 := k.a.wantGranted(first), k.a.wantGranted(second)
		if f2.Fence <= f1.Fence {
			k.Errorf("fences %d, then %d; want them to rise", f1.Fence, f2.Fence)
		}
		k.a.mustRelease(first)
		k.a.wantNothingToRelease(first)
		k.a.mustRenew(second)
		k.b.wantFences(f2.Fence)
	})

	s.test("TokensAreComparedWhole", func(k *kit) {
		c := k.mutex()
		g := k.a.wantGranted(c)
		for i := range c.Token {
			other := c
			other.Token[i] ^= 1
			k.b.wantLost(other)
			k.b.wantNothingToRelease(other)
			k.b.wantHeld(other)
		}
		k.a.wantFences(g.Fence)
	})

	s.test("TokensAreBytesAndNotText", func(k *kit) {
		for i, special := range []driver.Token{
			{15: 1}, {0: 1}, {0: '0'}, {0: '\'', 1: '"', 2: '\\'}, {0: '%', 1: '_', 2: '*'}, {0: '\r', 1: '\n'},
			{0: 0xff, 1: 0xfe, 2: 0xc3, 3: 0x28, 15: 0x80},
		} {
			c := k.mutex(named(k.nthName(i)))
			copy(special[4:12], c.Token[:]) // still unique
			c.Token = special
			g := k.a.wantGranted(c)
			if again := k.b.wantGranted(c); again.Fence != g.Fence {
				k.Errorf("token %d: the repeat got the fence %d, the first %d", i, again.Fence, g.Fence)
			}
			k.b.mustRenew(c)
			k.b.mustRelease(c)
			k.b.wantNothingToRelease(c)
		}
	})

	s.test("ATryLeavesNothingBehind", func(k *kit) {
		c := k.mutex()
		g := k.a.wantGranted(c)
		k.b.wantHeld(k.mutex())
		e := k.b.wantHoldersWaiters(1, 0)
		if e.Fence != g.Fence {
			k.Errorf("the last fence is %d, want %d: a try that fails takes none", e.Fence, g.Fence)
		}
		k.a.mustRelease(c)
		k.a.wantHoldersWaiters(0, 0)
	})

	s.test("AContendedTryDoesNotLengthenTheHoldersTime", func(k *kit) {
		k.a.wantGranted(k.mutex(ttl(2 * k.unit)))
		k.advance(k.unit)
		k.b.wantHeld(k.mutex())
		k.b.wantHeld(k.mutex(queue(k.unit / 2)))
		k.advancePast(k.unit)
		k.b.wantGranted(k.mutex())
	})

	s.test("OtherNamesAreIndependent", func(k *kit) {
		first := k.mutex()
		k.a.wantGranted(first)
		second := k.mutex(named(k.name + "/other"))
		k.b.wantGranted(second)
		k.a.mustRelease(first)
		k.b.mustRenew(second)
	})

	s.test("OneTokenMayClaimSeveralNames", func(k *kit) {
		first := k.mutex()
		second := first
		second.Name += "/other"
		k.a.wantGranted(first)
		k.a.wantGranted(second)
		k.a.mustRelease(first)
		k.a.mustRenew(second)
		k.a.mustRelease(second)
	})

	s.test("RefusesWithinAMomentAndNeverWaits", func(k *kit) {
		k.a.wantGranted(k.mutex())
		start := time.Now()
		k.b.wantHeld(k.mutex(queue(long)))
		if took := time.Since(start); took > 10*time.Second { // far below every TTL, far above any reply
			k.Errorf("took %v", took)
		}
	})
}
