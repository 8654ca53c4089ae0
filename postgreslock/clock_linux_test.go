package postgreslock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// When the server's clock is set forward, leases end early, and the next renewal tells
// the holder. When it is set back, leases last longer. Fences rise in either case, and no
// name is granted while another claim holds it by the clock.
func TestTheServersClockIsSet(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: a server with a clock of its own")
	}
	t.Parallel()
	s, clock := pgtest.StartWithClock(t)
	url := s.Database("clock")
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
				t.Errorf("by %v: fence %d after %d", by, g.Fence, last)
			}
			answers, err := one.Renew(ctx, []driver.LeaseRef{lease(c)})
			if err != nil || !errors.Is(answers[0], driver.ErrNoSuchLease) {
				t.Errorf("by %v: the holder heard %v, %v", by, answers, err)
			}
			last, c, one, two = g.Fence, next, two, one
		} else if !errors.Is(err, driver.ErrHeld) {
			t.Errorf("by %v: %v; want it held", by, err)
		}
	}
	releases(t, one, c)
	if g := gets(t, two, mutex("job")); g.Fence <= last {
		t.Errorf("fence %d after %d", g.Fence, last)
	}
}

// Any client that locks a name also forgets names that were unused for the retention
// time, but not while they are held.
func TestOldNamesAreForgotten(t *testing.T) {
	t.Parallel()
	s, clock := pgtest.StartWithClock(t)
	url := s.Database("old")
	d := start(t, url)
	c := mutex("held")
	c.TTL = driver.MaxTTL
	gets(t, d, c)
	for i := range 100 {
		once := mutex(fmt.Sprintf("once %d", i))
		gets(t, d, once)
		releases(t, d, once)
	}
	clock.Set(25 * time.Hour)
	names, often := conn(t, url), mutex("often")
	round := 0
	eventually(t, "two names are left", func() bool {
		// Tidying that was half done when the clock was set ends in a pause, with old
		// names left. So the pause has to end, as often as that happens.
		if round++; round%25 == 0 {
			clock.Set(25*time.Hour + time.Duration(round/25)*2*time.Hour)
		}
		for range 20 {
			gets(t, d, often)
			releases(t, d, often)
		}
		var n int
		err := names.QueryRow(ctx, "SELECT count(*) FROM pawl.locks").Scan(&n)
		return err == nil && n <= 2
	})
	renews(t, d, c)
}
