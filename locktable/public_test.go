package locktable_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

func TestPublicOmitsExpiredClaimsAndKeepsTheEntry(t *testing.T) {
	fx := newFixture(t)
	fx.wantGranted(with(mutex("a"), func(c *driver.Claim) { c.LockDelay = time.Minute }))
	fx.wantHeld(mutex("b"))
	before := string(fx.entry.Append(nil))
	seen := fx.entry.Public(fx.now.Add(ttl), "job")
	equal(t, "shown", len(seen.Holders)+len(seen.Waiters), 0)
	equal(t, "closed for", seen.ClosedFor, time.Minute)
	equal(t, "stored", string(fx.entry.Append(nil)), before)
}

func TestHoldsFindsTheLeaseWithThatFence(t *testing.T) {
	e := &locktable.Entry{Holders: []locktable.Holder{
		{ClaimInfo: locktable.ClaimInfo{Token: driver.Token{1}, Fences: 3}, Fence: 10, Expires: 100},
		{ClaimInfo: locktable.ClaimInfo{Fences: 1}, Fence: 20, Expires: 100}, // released, and kept for its minimum hold
	}}
	for _, c := range []struct {
		now   locktable.Instant
		fence uint64
		want  bool
	}{{99, 10, true}, {99, 12, true}, {99, 13, false}, {99, 9, false}, {100, 10, false}, {99, 20, false}, {99, 0, false}} {
		if got := e.Holds(c.now, c.fence); got != c.want {
			t.Errorf("Holds of fence %d at %d: %v", c.fence, c.now, got)
		}
	}
}
