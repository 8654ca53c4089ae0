package mysqllock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/mysqltest"
)

// When the server's clock is set forward, leases end early, and the next renewal tells
// the holder. When it is set back, leases last longer. Fences rise in either case, and no
// name is granted while another claim holds it by the clock.
func TestTheServersClockIsSet(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it sets a server's clock")
	}
	s, clock := mysqltest.StartWithClock(t)
	url := "mysql:" + s.DSN(mysqltest.Database)
	one, two := start(t, url), start(t, url)
	c := mutex("job")
	c.TTL = 50 * time.Second // the clock is set by more
	last := gets(t, one, c).Fence
	for _, by := range []time.Duration{60 * time.Second, -60 * time.Second, 0} {
		clock.Set(by)
		next := mutex("job")
		next.TTL = c.TTL
		g, err := two.Acquire(ctx, next)
		if ahead := by > 0; ahead != (err == nil) {
			t.Errorf("by %v: %v", by, err)
		}
		if err == nil {
			if g.Fence <= last {
				t.Errorf("by %v: the fence %d after %d", by, g.Fence, last)
			}
			if answers, err := one.Renew(ctx, []driver.LeaseRef{lease(c)}); err != nil || !errors.Is(answers[0], driver.ErrNoSuchLease) {
				t.Errorf("by %v: the holder heard %v, %v", by, answers, err)
			}
			last, c, one, two = g.Fence, next, two, one
		}
	}
	releases(t, one, c)
	if g := gets(t, two, mutex("job")); g.Fence <= last {
		t.Errorf("the fence %d after %d", g.Fence, last)
	}
}
