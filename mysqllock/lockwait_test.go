package mysqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

// keepLocked opens a transaction that keeps the row of a name locked.
func keepLocked(t *testing.T, db *sql.DB, name string) *sql.Tx {
	t.Helper()
	tx := begin(t, db)
	must(tx.ExecContext(ctx, lockRow, name))(t)
	return tx
}

const lockRow = "SELECT 1 FROM pawl_names WHERE name = ? FOR UPDATE"

// countWaiting returns the number of statements in a server that wait for a row. It does
// not use information_schema.INNODB_TRX, which the server updates only when no client has
// read it for a tenth of a second.
func countWaiting(t *testing.T, root *sql.DB) int {
	t.Helper()
	return status(t, root, "Innodb_row_lock_current_waits")
}

// A locked row delays the renewal of its own name, and of no other.
func TestALockedRowDelaysNoOtherRenewal(t *testing.T) {
	s, db, _ := freshDatabase(t)
	d := openDriver(t, "mysql:"+s.DSN(databaseOf(t, db)))
	servertest.LockedRows(t, d, 1, "keeps the row locked", func(name string, _ uint64) (unlock func()) {
		tx := keepLocked(t, db, name)
		return func() { _ = tx.Rollback() }
	})
}

// While the renewals wait, the row changes and is locked again. The driver then repeats
// the renewal of that row alone.
func TestAChangedAndLockedRowDelaysNoOtherRenewal(t *testing.T) {
	s, db, d := freshDatabase(t) // over a caller's pool, whose statements wait for 50 s
	changed, unchanged := mutex("changed"), mutex("still")
	gets(t, d, changed)
	gets(t, d, unchanged)
	changed.TTL *= 2 // so that the renewal writes, however wide the window of the grant was
	first, second, root := keepLocked(t, db, "changed"), begin(t, db), s.Root(t)
	boundedCtx, cancel := context.WithTimeout(ctx, 2*time.Minute) // only a renewal that waits for the row takes so long
	defer cancel()
	var answers []error
	renewed, locked := make(chan error, 1), make(chan error, 1)
	go func() {
		var err error
		answers, err = d.Renew(boundedCtx, []driver.LeaseRef{lease(changed), lease(unchanged)})
		renewed <- err
	}()
	waiting := func(n int) func() bool {
		return func() bool { return countWaiting(t, root) >= n || len(renewed) > 0 }
	}
	eventually(t, "the renewals wait for the row", waiting(1))
	go func() {
		_, err := second.ExecContext(ctx, lockRow, "changed")
		locked <- err
	}()
	eventually(t, "the second transaction waits, too", waiting(2))
	must(first.ExecContext(ctx, "UPDATE pawl_names SET version = version + 1 WHERE name = 'changed'"))(t)
	noError(t, first.Commit())
	noError(t, <-locked)
	noError(t, <-renewed)
	if answers[1] != nil {
		t.Errorf("the renewal of the other name: %v", answers[1])
	}
	wantDriverError(t, answers[0], false, "keeps the row locked")
}

func TestTheErrorOfATimeoutNamesALockedRow(t *testing.T) {
	s, db, _ := freshDatabase(t)
	d := openDriver(t, "mysql:"+s.DSN(databaseOf(t, db)))
	c := mutex("job")
	gets(t, d, c)
	keepLocked(t, db, "job")
	var err error
	for timeout := 1500 * time.Millisecond; timeout < time.Minute; timeout *= 2 {
		shortCtx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		err = d.Release(shortCtx, lease(c))
		e, ok := errors.AsType[*driver.Error](err)
		if ok && errors.Is(err, context.DeadlineExceeded) && strings.Contains(e.Hint, "keeps the row locked") && e.Op == "release" && e.Name == "job" {
			return
		}
	}
	t.Errorf("Release: %v; want an error that names the locked row", err)
}
