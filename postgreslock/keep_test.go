package postgreslock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

// keepsLate makes a crowd whose head has read that it still waits, and whose row does not
// change before letGo. answered is the result of its claim, which ends after soon, or
// later if the machine is too slow for that.
func keepsLate(t *testing.T, soon time.Duration) (url string, holder, head driver.Claim, letGo func(), answered <-chan error) {
	t.Helper()
	server, url, name := fresh(t)
	proxy := servertest.StartProxy(t, server.Addr)
	d := start(t, "postgres://postgres@"+proxy.Addr+"/"+name+"?sslmode=disable&default_query_exec_mode=exec")
	holder, all := crowd(t, d)
	head = all[0]
	head.QueueTTL += time.Second // a place that lasts as long is not changed
	keeping, letGo := proxy.HoldFrom("AND waiter = $5")
	answer := make(chan error, 1)
	for ; ; soon *= 2 {
		go func() {
			ctx, cancel := context.WithTimeout(ctx, soon)
			defer cancel()
			_, err := d.Acquire(ctx, head)
			answer <- err
		}()
		select {
		case <-keeping:
			return url, holder, head, letGo, answer
		case err := <-answer:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("%v, and its row was not changed by itself", err)
			}
		}
	}
}

// A waiter that is granted the name after it has read that it still waits holds the name,
// and its claim returns the grant.
func TestAKeepThatComesAfterTheGrantIsTheGrant(t *testing.T) {
	t.Parallel()
	url, holder, head, letGo, answered := keepsLate(t, 5*time.Minute)
	releases(t, start(t, url), holder)
	asked := time.Now()
	letGo()
	if err := <-answered; err != nil {
		t.Fatalf("%v; want the grant", err)
	}
	var until time.Time
	if err := conn(t, url).QueryRow(ctx, "SELECT until FROM pawl.locks").Scan(&until); err != nil {
		t.Fatal(err)
	}
	if full := asked.Add(head.TTL); until.Before(full) {
		t.Errorf("the lease ends %v early", full.Sub(until))
	}
}

// A keep that comes late does not shorten a later, faster one: the waiter relies on that.
func TestAKeepThatIsOvertakenShortensNothing(t *testing.T) {
	t.Parallel()
	url, _, head, letGo, answered := keepsLate(t, 5*time.Minute)
	waits(t, start(t, url), head)
	kept := lapses(t, url, head)
	letGo()
	if err := <-answered; !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("%v; want ErrHeld", err)
	}
	if now := lapses(t, url, head); now < kept {
		t.Errorf("its place lapses %v earlier than was said", time.Duration(kept-now)*time.Microsecond)
	}
}

// answerTimeout is the driver's.
const answerTimeout = 2 * time.Second

// A keep that comes after its claim has ended changes nothing.
func TestAKeepThatComesAfterItsEndChangesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it waits for 7 s")
	}
	t.Parallel()
	url, _, head, letGo, answered := keepsLate(t, 3*time.Second)
	watch := conn(t, url)
	sessions := func() (n int) {
		if err := watch.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := lapses(t, url, head)
	if err := <-answered; !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v; want its end", err)
	}
	all := sessions()
	time.Sleep(2 * answerTimeout) // the driver closes its connection
	letGo()
	eventually(t, "the session that keeps late has run all that came, and ends", func() bool { return sessions() < all })
	if after := lapses(t, url, head); after != before {
		t.Errorf("its place lapses %v later", time.Duration(after-before)*time.Microsecond)
	}
}
