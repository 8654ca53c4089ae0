package postgreslock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// An operator empties the table, or restores an old one: held names are granted again,
// with greater fences, and the next renewal tells the holder.
func TestRowsThatAreDeletedOrRestored(t *testing.T) {
	t.Parallel()
	for what, statements := range map[string][]string{
		"deleted":  {"DELETE FROM pawl.locks"},
		"restored": {"DELETE FROM pawl.locks", "INSERT INTO pawl.locks SELECT * FROM backup"},
	} {
		t.Run(what, func(t *testing.T) {
			_, url, _ := fresh(t)
			one, two := start(t, url), start(t, url)
			before := mutex("job")
			gets(t, one, before)
			releases(t, one, before)
			exec(t, conn(t, url), "CREATE TABLE backup AS SELECT * FROM pawl.locks")
			c := mutex("job")
			first := gets(t, one, c)
			exec(t, conn(t, url), statements...)
			if second := gets(t, two, mutex("job")); second.Fence <= first.Fence {
				t.Errorf("fence %d after %d", second.Fence, first.Fence)
			}
			answers, err := one.Renew(ctx, []driver.LeaseRef{lease(c)})
			if err != nil || !errors.Is(answers[0], driver.ErrNoSuchLease) {
				t.Errorf("the holder heard %v, %v; want ErrNoSuchLease", answers, err)
			}
		})
	}
}

// An operator deletes rows of waiters. The holder releases, the other waiters get the
// name, and a waiter that has lost its place takes a new one.
func TestRowsOfWaitersThatAreDeleted(t *testing.T) {
	t.Parallel()
	for what, statement := range map[string]string{
		"all":  "TRUNCATE pawl.waiters",
		"some": "DELETE FROM pawl.waiters WHERE id IN (SELECT id FROM pawl.waiters ORDER BY since, id LIMIT 10)",
	} {
		t.Run(what, func(t *testing.T) {
			_, url, _ := fresh(t)
			d := start(t, url)
			holder, all := crowd(t, d)
			exec(t, conn(t, url), statement)
			waits(t, d, all[0])
			e, err := d.Inspect(ctx, "job")
			if err != nil || len(e.Holders) != 1 || len(e.Waiters) > 11 {
				t.Errorf("%+v, %v", e, err)
			}
			for _, c := range append([]driver.Claim{holder}, all[1:]...) {
				if err := d.Release(ctx, lease(c)); err != nil && !errors.Is(err, driver.ErrNoSuchLease) {
					t.Fatal(err)
				}
			}
			gets(t, d, all[0])
			if e, err = d.Inspect(ctx, "job"); err != nil || len(e.Holders) != 1 || len(e.Waiters) != 0 {
				t.Errorf("%+v, %v", e, err)
			}
		})
	}
}

// A row of a waiter that was edited so that its place never ends is damage.
func TestARowOfAWaiterThatIsEditedIsDamage(t *testing.T) {
	t.Parallel()
	_, url, _ := fresh(t)
	d := start(t, url)
	crowd(t, d)
	c := queued("job")
	c.QueueTTL = time.Second
	for again := true; again; { // on a slow machine it may end before it is answered
		_, err := d.Acquire(ctx, c)
		again = !errors.Is(err, driver.ErrHeld)
	}
	said, other := lapses(t, url, c), conn(t, url)
	exec(t, other, "UPDATE pawl.waiters SET expires = expires + 3600000000")
	eventually(t, "the place is over", func() (over bool) {
		err := other.QueryRow(ctx, "SELECT extract(epoch FROM clock_timestamp()) * 1000000 > $1::bigint", said).Scan(&over)
		return over && err == nil
	})
	if _, err := d.Acquire(ctx, c); !permanent(err) {
		t.Errorf("%v; want a permanent error", err)
	}
}
