package postgreslock_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/postgreslock"
)

// withoutNotify returns the URL of a new database, for a user that may not notify. The
// user's name is unique, because all databases of the server have the same users.
func withoutNotify(t testing.TB) string {
	t.Helper()
	_, url, name := freshDatabase(t)
	exec(t, conn(t, url), `CREATE ROLE "mute `+name+`" LOGIN`, `GRANT ALL ON DATABASE "`+name+`" TO "mute `+name+`"`,
		"REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC")
	return strings.Replace(url, "postgres@", "mute%20"+name+"@", 1)
}

// A holder passes a name on even if its user may not send notifications.
func TestAUserThatMayNotNotifyPassesNamesOn(t *testing.T) {
	t.Parallel()
	url := withoutNotify(t)
	for _, waiters := range []int{1, 12} {
		one, other := openDriver(t, url), openDriver(t, url) // neither has been refused yet
		job := fmt.Sprint("job", waiters)
		c := mutex(job)
		gets(t, one, c)
		var waiting []driver.Claim
		for range waiters {
			w := queued(job)
			isRefused(t, other, w)
			waiting = append(waiting, w)
		}
		if err := one.Release(ctx, driver.LeaseRef{Name: job, Token: c.Token}); err != nil {
			t.Fatalf("release with %d waiters: %v", waiters, err)
		}
		gets(t, other, waiting[0])
		if err := other.Release(servertest.Within(t, 2*time.Minute), driver.LeaseRef{Name: job, Token: waiting[0].Token}); err != nil {
			t.Errorf("release by the waiter: %v", err)
		}
	}
}

// Releases that the server refuses together are each repeated without a notification.
func TestReleasesThatAreRefusedTogetherAreAllRepeated(t *testing.T) {
	t.Parallel()
	url := withoutNotify(t)
	one, other := openDriver(t, url), openDriver(t, url)
	var held []driver.Claim
	for i := range 16 {
		c := mutex(fmt.Sprint("job", i))
		gets(t, one, c)
		isRefused(t, other, queued(c.Name))
		held = append(held, c)
	}
	var all sync.WaitGroup
	for range 2 { // the first round opens the connections
		for _, c := range held {
			all.Go(func() { renews(t, one, c) })
		}
		all.Wait()
	}
	for _, c := range held {
		all.Go(func() {
			if err := one.Release(ctx, lease(c)); err != nil {
				t.Errorf("release of %s: %v", c.Name, err)
			}
		})
	}
	all.Wait()
}

// A wall clock that is set back does not prolong the pause.
func TestAPauseOfNotificationsEndsByTheMonotonicClock(t *testing.T) {
	end := postgreslock.NotifyPauseEnd(&pgconn.PgError{Code: "42501", Message: "permission denied for function pg_notify"})
	if end == end.Round(0) {
		t.Errorf("the end of the pause has no monotonic time: %v", end)
	}
}
