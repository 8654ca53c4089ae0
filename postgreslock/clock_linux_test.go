package postgreslock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestTheServersClockIsSet(t *testing.T) {
	skipIfShort(t, "a server with a clock of its own")
	t.Parallel()
	s, clock := pgtest.StartWithClock(t)
	url := s.Database("clock")
	servertest.ClockEndsLeases(t, openDriver(t, url), openDriver(t, url), clock.Set)
}

// A client that locks a name also deletes names that were unused for the retention time,
// except held names.
func TestOldNamesAreForgotten(t *testing.T) {
	t.Parallel()
	s, clock := pgtest.StartWithClock(t)
	url := s.Database("old")
	d := openDriver(t, url)
	c := mutex("held")
	c.TTL = driver.MaxTTL
	gets(t, d, c)
	for i := range 70 { // more than one page of tidying
		cycle(t, d, fmt.Sprintf("once %d", i))
	}
	names, often := conn(t, url), mutex("often")
	after := 25 * time.Hour
	eventually(t, "two names are left", func() bool {
		// If the clock is set during a round of tidying, old names are left, and a pause
		// of an hour begins.
		clock.Set(after)
		after += 2 * time.Hour
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
