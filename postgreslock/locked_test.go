package postgreslock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// countWaiting returns the number of sessions that have waited for a lock for longer than
// d.
func countWaiting(t testing.TB, c *pgx.Conn, d time.Duration) (n int) {
	t.Helper()
	row := c.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"+
		" AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > $1", d)
	noError(t, row.Scan(&n))
	return n
}

// A caller gives up while an operator has locked the whole table. The statement then does
// not keep its connection until the table is free.
func TestAnAbandonedStatementStopsWaitingForATable(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d := openDriver(t, url)
	c := mutex("job")
	gets(t, d, c)
	operator, observer := begin(t, conn(t, url)), conn(t, url)
	must(operator.Exec(ctx, "LOCK TABLE pawl.locks"))(t)
	callerCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	released := make(chan error, 1)
	go func() { released <- d.Release(callerCtx, lease(c)) }()
	eventually(t, "a statement waits for the table", func() bool { return countWaiting(t, observer, 0) > 0 })
	cancel()
	if err := <-released; err == nil {
		t.Error("Release succeeded while the table was locked")
	}
	eventually(t, "no statement waits for the table any more", func() bool { return countWaiting(t, observer, 0) == 0 })
	if err := operator.Commit(ctx); err != nil {
		t.Error(err)
	}
}

// A check waits behind a waiting renewal of its name, so checks cannot starve renewals.
func TestALeaseCheckDoesNotOvertakeARenewal(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d := openDriver(t, url)
	c := mutex("job")
	c.TTL = time.Hour
	g := gets(t, d, c)
	first := begin(t, conn(t, url))
	noError(t, d.CheckLease(ctx, first, fencetest.Lease("job", g.Fence)))
	c.TTL *= 2 // on a busy machine the lease may already last longer than one TTL
	renewed, checked := make(chan error, 1), make(chan error, 1)
	go func() {
		var err error
		for retry := true; retry; retry = errors.Is(err, driver.ErrUnavailable) { // as a client does
			var answers []error
			answers, err = d.Renew(ctx, []driver.LeaseRef{lease(c)})
			err = errors.Join(append(answers, err)...)
		}
		renewed <- err
	}()
	observer := conn(t, url)
	eventually(t, "the renewal waits for the row", func() bool { return countWaiting(t, observer, 300*time.Millisecond) == 1 })
	second := begin(t, conn(t, url))
	go func() { checked <- d.CheckLease(ctx, second, fencetest.Lease("job", g.Fence)) }()
	eventually(t, "the second check waits", func() bool { return len(checked) > 0 || countWaiting(t, observer, 0) == 2 })
	if len(checked) > 0 {
		t.Errorf("the second check passed the renewal: %v", <-checked)
		checked <- nil
	}
	noError(t, first.Commit(ctx))
	if err := <-checked; err != nil {
		t.Errorf("CheckLease: %v", err)
	}
	noError(t, second.Commit(ctx))
	if err := <-renewed; err != nil {
		t.Errorf("Renew: %v", err)
	}
}

// A statement with several renewals does not wait for locked rows. Only the renewals of
// these rows fail.
func TestALockedRowFailsOnlyItsOwnRenewal(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d := openDriver(t, url)
	tx := begin(t, conn(t, url))
	servertest.LockedRows(t, d, 30, "keeps a row locked", func(name string, fence uint64) (unlock func()) {
		noError(t, d.CheckLease(ctx, tx, fencetest.Lease(name, fence)))
		return func() { _ = tx.Rollback(ctx) }
	})
}

// If another client changes the row before a check locks it, the driver repeats the
// renewal of that row alone. The other renewals succeed here, too.
func TestALockedAndChangedRowFailsOnlyItsOwnRenewal(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d, other := openDriver(t, url), openDriver(t, url)
	changed, unchanged := mutex("changed"), mutex("still")
	changed.TTL, unchanged.TTL = time.Hour, time.Hour
	g := gets(t, d, changed)
	gets(t, d, unchanged)
	isRefused(t, other, queued("changed"))
	noError(t, d.CheckLease(ctx, begin(t, conn(t, url)), fencetest.Lease("changed", g.Fence)))
	boundedCtx, cancel := context.WithTimeout(ctx, 2*time.Minute) // only a renewal that waits for the row takes so long
	defer cancel()
	changed.TTL *= 2 // so that the renewal writes, however wide the window of the grant was
	answers, err := d.Renew(boundedCtx, []driver.LeaseRef{lease(changed), lease(unchanged)})
	noError(t, errors.Join(err, boundedCtx.Err()))
	if answers[1] != nil {
		t.Errorf("the renewal of the other name: %v", answers[1])
	}
	wantDriverError(t, answers[0], false, "keeps a row locked")
}

// Steps that wait for locked rows leave connections to the other steps of a client.
func TestFewStepsWaitForRowsAtATime(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d := openDriver(t, url+"?pool_max_conns=4")
	tx := begin(t, conn(t, url))
	callerCtx, cancel := context.WithCancel(ctx)
	failed := make(chan error)
	const locked = 20
	for i := range locked {
		c := mutex(fmt.Sprint("job ", i))
		c.TTL = time.Hour
		noError(t, d.CheckLease(ctx, tx, fencetest.Lease(c.Name, gets(t, d, c).Fence)))
		go func() {
			_, err := d.Acquire(callerCtx, queued(c.Name))
			failed <- err
		}()
	}
	observer := conn(t, url)
	eventually(t, "one step waits", func() bool { return countWaiting(t, observer, 300*time.Millisecond) == 1 })
	for i := range 20 {
		c := mutex(fmt.Sprint("free ", i))
		gets(t, d, c)
		renews(t, d, c)
		releases(t, d, c)
	}
	cancel()
	for range locked {
		if err := <-failed; err == nil {
			t.Error("a held name was granted")
		}
	}
	_ = tx.Rollback(ctx)
}

// A claim for several names keeps none of their rows locked while it waits for another.
func TestAllKeepsNoRowLockedWhileItWaitsForAnother(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d, other := openDriver(t, url), openDriver(t, url)
	held, locked := mutex("a"), mutex("b")
	held.TTL, held.Weight, held.Limit = time.Hour, 1, 2
	wanted := held
	wanted.Token = driver.NewToken()
	gets(t, d, held)
	gets(t, d, locked)
	releases(t, d, locked)
	tx := begin(t, conn(t, url))
	must(tx.Exec(ctx, "SELECT FROM pawl.locks WHERE name = 'b' FOR UPDATE"))(t)
	claimCtx, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() {
		_, err := other.AcquireAll(claimCtx, []driver.Claim{wanted, mutex("b")})
		ended <- err
	}()
	observer := conn(t, url)
	eventually(t, "AcquireAll waits for the row", func() bool { return countWaiting(t, observer, 0) == 1 })
	for range 5 {
		renews(t, d, held)
	}
	select {
	case err := <-ended:
		t.Errorf("AcquireAll: %v; want a wait until ctx ends", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("AcquireAll: %v; want context.Canceled", err)
	}
	_ = tx.Rollback(ctx)
}
