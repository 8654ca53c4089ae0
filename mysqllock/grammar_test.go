package mysqllock_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// onlyMariaDB matches syntax that MySQL 8 lacks, or has deprecated, according to its
// manual: SET STATEMENT, RETURNING, WAIT n for FOR UPDATE, OR REPLACE and IF NOT EXISTS
// where only MariaDB has them, VALUES() of a column, and sequences.
var onlyMariaDB = regexp.MustCompile(`(?i)SET STATEMENT|\bRETURNING\b|FOR UPDATE WAIT|CREATE OR REPLACE TABLE|` +
	`\bVALUES?\(\w+\)|NEXT VALUE FOR|\bSYSTEM_TIME\b|ADD COLUMN IF NOT EXISTS|\bUUID\b`)

// sentStatements makes drivers send all their statements, over a pool of their own and
// over a caller's pool, and returns the statements.
func sentStatements(t *testing.T, args ...string) (statements []string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "general.log")
	s := mysqltest.Start(t, append(args, "--general-log=1", "--general-log-file="+log, "--innodb-lock-wait-timeout=1")...)
	byURL := openDriver(t, "mysql:"+s.DSN(mysqltest.Database))
	db := s.Open(t, mysqltest.Database)
	overPool := driverOver(t, db, nil)
	for i, d := range []driver.Driver{byURL, overPool} {
		var leases []driver.LeaseRef
		for k := range 3 {
			c := mutex(fmt.Sprintf("job-%d-%d", i, k))
			gets(t, d, c)
			leases = append(leases, lease(c))
		}
		if answers, err := d.Renew(ctx, leases); err != nil || errors.Join(answers...) != nil {
			t.Fatal(answers, err)
		}
		waiter := queued(leases[0].Name)
		isRefused(t, d, waiter)
		tx := keepLocked(t, db, leases[1].Name)
		if _, err := d.Renew(ctx, leases); err != nil && !errors.Is(err, driver.ErrUnavailable) { // one row is locked
			t.Fatal(err)
		}
		_ = tx.Rollback()
		noError(t, d.Release(ctx, leases[0]))
	}
	broken := mutex("broken")
	g := gets(t, byURL, broken)
	noError(t, overPool.Break(ctx, "broken", g.Fence, 0, driver.Owner{}))
	servertest.Lists(t, byURL, "")
	if err := byURL.CheckLease(ctx, begin(t, db), fencetest.Lease("job-0-2", 1)); !errors.Is(err, driver.ErrStale) {
		t.Fatal(err)
	}
	servertest.FindingsOf(t, byURL)
	b, err := os.ReadFile(log)
	noError(t, err)
	return regexp.MustCompile(` (?:Query|Prepare|Execute)\t.*`).FindAllString(string(b), -1)
}

// MySQL itself was not available. So the test starts a MariaDB that claims to be MySQL,
// and checks the statements that it gets.
func TestMySQLGetsNoStatementsOfMariaDB(t *testing.T) {
	t.Parallel()
	contains := func(all []string, part string) bool { return strings.Contains(strings.Join(all, "\n"), part) }
	sent := sentStatements(t, "--version=8.0.36")
	for _, statement := range sent {
		if what := onlyMariaDB.FindString(statement); what != "" {
			t.Errorf("the driver sent %s to MySQL, in %.200s", what, statement)
		}
	}
	for _, part := range []string{"STRAIGHT_JOIN", "SKIP LOCKED", "LOCK IN SHARE MODE", "ON DUPLICATE KEY UPDATE version = IF", "CREATE TABLE IF NOT EXISTS", "pawl_lost` (inbox"} {
		if !contains(sent, part) {
			t.Errorf("the driver sent no statement with %s", part)
		}
	}
	if !contains(sentStatements(t), "SET STATEMENT") {
		t.Error("MariaDB did not get SET STATEMENT either, so the test proves nothing")
	}
}
