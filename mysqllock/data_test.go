package mysqllock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/mysqllock"
)

// A full disk causes the first error, for the first claim of a name. A node of Galera
// without a majority causes the second, for each change.
func TestErrorsOfAServerInTroubleHaveAHint(t *testing.T) {
	for hint, trouble := range map[string]string{
		"full":   "INSERT ON pawl_names FOR EACH ROW SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'The table is full'",
		"Galera": "UPDATE ON pawl_names FOR EACH ROW SIGNAL SQLSTATE '08S01' SET MYSQL_ERRNO = 1047, MESSAGE_TEXT = 'WSREP has not yet prepared node for application use'",
	} {
		_, db, d := freshDatabase(t)
		c := mutex("job")
		gets(t, d, c)
		exec(t, db, "CREATE TRIGGER trouble BEFORE "+trouble)
		err := d.Release(ctx, lease(c))
		if hint == "full" {
			noError(t, err)
			_, err = d.Acquire(ctx, mutex("other"))
		}
		wantDriverError(t, err, false, hint)
	}
}

// The driver repeats a statement after a deadlock, and after a lock timeout.
func TestStatementsAreRepeatedAfterDeadlocks(t *testing.T) {
	_, db, d := freshDatabase(t)
	gets(t, d, mutex("other"))
	exec(t, db, `CREATE TRIGGER unlucky BEFORE UPDATE ON pawl_names FOR EACH ROW
		IF RAND() < 0.15 THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213;
		ELSEIF RAND() < 0.15 THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205; END IF`)
	last := uint64(0)
	for range 50 {
		g := cycle(t, d, "job")
		wantHigherFence(t, last, g.Fence)
		last = g.Fence
	}
}

// After an operator has deleted rows, or dropped or restored the tables, the next renewal
// of a holder fails, and the next fence is greater.
func TestDeletedOrRestoredNamesGetGreaterFences(t *testing.T) {
	t.Parallel()
	for what, statements := range map[string][]string{
		"deleted":   {"DELETE FROM pawl_names"},
		"truncated": {"TRUNCATE TABLE pawl_names"},
		"dropped":   {"DROP TABLE pawl_names, pawl_lost"},
		"restored":  {"DELETE FROM pawl_names", "INSERT INTO pawl_names SELECT * FROM backup"},
	} {
		t.Run(what, func(t *testing.T) {
			_, db, d := freshDatabase(t)
			cycle(t, d, "job")
			exec(t, db, "CREATE TABLE backup AS SELECT * FROM pawl_names")
			servertest.Forgets(t, d, driverOver(t, db, nil), func() { exec(t, db, statements...) })
		})
	}
}

// If a server can prepare no more statements, the driver sends them as text.
func TestStatementsAreSentAsTextIfNoneCanBePrepared(t *testing.T) {
	skipIfShort(t, "it starts a server")
	s := mysqltest.Start(t)
	url := "mysql:" + s.DSN(mysqltest.Database)
	early := openDriver(t, url)
	root := s.Root(t)
	exec(t, root, "SET GLOBAL max_prepared_stmt_count = 0")
	for _, d := range []*mysqllock.Driver{early, openDriver(t, url)} {
		_, _ = root.ExecContext(ctx, "KILL USER "+mysqltest.User) // the driver has to prepare all statements again
		for range 3 {
			cycle(t, d, "job")
		}
	}
	exec(t, root, "SET GLOBAL max_prepared_stmt_count = 16382")
}

// The columns holders and until are readable, with any characters in the name.
func TestColumnsShowTheHolders(t *testing.T) {
	s, db, overPool := freshDatabase(t)
	c := mutex("jöb \"'\\ %")
	c.Owner.Host = strings.Repeat("ü", 100)
	for _, d := range []*mysqllock.Driver{overPool, openDriver(t, "mysql:"+s.DSN(databaseOf(t, db)))} {
		for _, step := range []string{"inserted", "updated"} {
			g := gets(t, d, c)
			var fence uint64
			var holders string
			var left float64
			read := "SELECT fence, holders, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), until) / 1e6 FROM pawl_names WHERE name = ?"
			noError(t, db.QueryRowContext(ctx, read, c.Name).Scan(&fence, &holders, &left))
			if fence != g.Fence || !strings.Contains(holders, c.Owner.Host) || left < 300 || left > 601 {
				t.Errorf("%s: fence %d, holders %q, %f s left; want fence %d, and its holder", step, fence, holders, left, g.Fence)
			}
			releases(t, d, c)
			var free bool
			if err := db.QueryRowContext(ctx, "SELECT holders = '' AND until IS NULL FROM pawl_names WHERE name = ?", c.Name).Scan(&free); err != nil || !free {
				t.Errorf("the columns do not show the release: %v", err)
			}
		}
	}
}

// Renewing entries of 64 kB and more in one statement does not change them.
func TestLargeEntriesAreRenewedTogether(t *testing.T) {
	skipIfShort(t, "it fills large entries")
	t.Parallel()
	_, _, d := freshDatabase(t)
	var leases []driver.LeaseRef
	for _, name := range []string{"one", "two"} {
		held := mutex(name)
		gets(t, d, held)
		leases = append(leases, lease(held))
		for range 12 {
			c := queued(name)
			c.QueueTTL, c.Owner.Labels = time.Minute, map[string]string{}
			for i := range driver.MaxLabels {
				c.Owner.Labels[fmt.Sprintf("%0200d", i)] = strings.Repeat("x", driver.MaxLabelSize)
			}
			isRefused(t, d, c)
		}
	}
	for range 2 {
		if answers, err := d.Renew(ctx, leases); err != nil || errors.Join(answers...) != nil {
			t.Fatalf("Renew: %v, %v", answers, err)
		}
	}
}
