package mysqllock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/mysqllock"
)

// giveUpClaim makes a claim whose write is under way in the server when its ctx ends.
func giveUpClaim(t *testing.T, s *mysqltest.Server, d *mysqllock.Driver, c driver.Claim) {
	t.Helper()
	for timeout := 300 * time.Millisecond; ; timeout *= 2 { // a slow machine may not send it in time
		shortCtx, cancel := context.WithTimeout(ctx, timeout)
		_, err := d.Acquire(shortCtx, c)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Acquire: %v; want the end of its ctx", err)
		}
		if countWrites(t, s) > 0 {
			return
		}
		if timeout > time.Minute {
			t.Fatal("no write is under way in the server")
		}
	}
}

// countWrites returns the number of writes that are under way in the server.
func countWrites(t *testing.T, s *mysqltest.Server) (n int) {
	t.Helper()
	const count = "SELECT COUNT(*) FROM information_schema.processlist WHERE USER = '" + mysqltest.User +
		"' AND COMMAND IN ('Query', 'Execute') AND (INFO LIKE 'INSERT%' OR INFO LIKE 'UPDATE%')"
	noError(t, s.Root(t).QueryRowContext(ctx, count).Scan(&n))
	return n
}

// waitForWrites waits until no write is under way in the server.
func waitForWrites(t *testing.T, s *mysqltest.Server) {
	t.Helper()
	eventually(t, "no write is under way any more", func() bool { return countWrites(t, s) == 0 })
}

func checkFree(t *testing.T, d *mysqllock.Driver, name string) {
	t.Helper()
	if e, err := d.Inspect(ctx, name); err != nil || len(e.Holders) > 0 {
		t.Errorf("%s is held: %+v, %v", name, e.Holders, err)
	}
}

// In REPEATABLE READ, the default, a transaction that reads a missing name prevents other
// sessions from inserting a row near it. The insert of a claim that waits for that
// transaction must check the clock after its wait.
func TestALateInsertGrantsNothing(t *testing.T) {
	s, db, _ := freshDatabase(t)
	d := openDriver(t, "mysql:"+s.DSN(databaseOf(t, db)))
	checkFree(t, d, "job") // creates the tables
	tx := begin(t, db)
	if err := d.CheckLease(ctx, tx, fencetest.Lease("nosuch", 1)); !errors.Is(err, driver.ErrStale) {
		t.Fatal(err)
	}
	giveUpClaim(t, s, d, mutex("other"))
	noError(t, tx.Rollback())
	waitForWrites(t, s)
	checkFree(t, d, "other")
}

// A commit may hang after the statement has checked the clock, because of a backup, a
// disk or a replica. Until the commit ends, readers do not see the grant. If the caller
// gives up its claim meanwhile, Release must not return ErrNoSuchLease.
func TestAClaimWhoseCommitHangsIsStillReleased(t *testing.T) {
	s, db, _ := freshDatabase(t)
	d := openDriver(t, "mysql:"+s.DSN(databaseOf(t, db)))
	known := mutex("known")
	gets(t, d, known)
	releases(t, d, known)
	for _, name := range []string{"new", "known"} {
		backup, err := s.Root(t).Conn(ctx)
		noError(t, err)
		enterStage := func(stage string) {
			must(backup.ExecContext(ctx, "BACKUP STAGE "+stage))(t)
		}
		for _, stage := range []string{"START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT"} {
			enterStage(stage)
		}
		c := mutex(name)
		giveUpClaim(t, s, d, c)
		shortCtx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		if err := d.Release(shortCtx, lease(c)); err == nil || errors.Is(err, driver.ErrNoSuchLease) {
			t.Errorf("%s: Release returned %v while the claim was under way", name, err)
		}
		cancel()
		enterStage("END")
		waitForWrites(t, s)
		if err := d.Release(ctx, lease(c)); err != nil && !errors.Is(err, driver.ErrNoSuchLease) {
			t.Errorf("%s: Release: %v", name, err)
		}
		checkFree(t, d, name)
		if err := backup.Close(); err != nil {
			t.Error(err)
		}
	}
}
