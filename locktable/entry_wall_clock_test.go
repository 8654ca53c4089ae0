package locktable_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A table's clock may be behind the time of day. Leases follow that clock. But fences are
// no less than the time of day, which also decides when a name may be forgotten.
func TestFencesFollowTheWallClockIfTheClockIsBehind(t *testing.T) {
	now, wallClock := locktable.Instant(1_000_000_000), locktable.Instant(5_000_000_000)
	c := &driver.Claim{Name: "n", Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Second}
	e := &locktable.Entry{WallClock: wallClock}
	g, err := e.Acquire(now, c, "inbox")
	if err != nil || g.Fence != uint64(wallClock) {
		t.Fatalf("fence %d, %v; want %d", g.Fence, err, wallClock)
	}
	if h := e.Holders[0]; h.Since != now || h.Expires != now.Add(c.TTL) {
		t.Errorf("held from %d to %d; want times of the table's clock", h.Since, h.Expires)
	}
	e.WallClock++
	if e.Forgettable(now, time.Millisecond) {
		t.Error("Forgettable is true while the name is held")
	}
	later := now.Add(c.TTL)
	if e.Forgettable(later, time.Millisecond) {
		t.Error("Forgettable is true too early")
	}
	if e.WallClock = wallClock.Add(time.Second); !e.Forgettable(later, time.Millisecond) {
		t.Error("Forgettable is false after the retention")
	}
	e.WallClock = 0 // a client whose clock is behind
	c.Token = driver.NewToken()
	if next, err := e.Acquire(later, c, "inbox"); err != nil || next.Fence != g.Fence+1 {
		t.Errorf("fence %d after %d, %v", next.Fence, g.Fence, err)
	}
}
