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

// givesUp makes a claim that the server delays longer than its ctx.
func givesUp(t *testing.T, s *mysqltest.Server, d *mysqllock.Driver, c driver.Claim) {
	t.Helper()
	for patience := 300 * time.Millisecond; ; patience *= 2 { // on a slow machine it does not reach the server in time
		short, cancel := context.WithTimeout(ctx, patience)
		_, err := d.Acquire(short, c)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Acquire: %v; want the end of its ctx", err)
		}
		if writing(t, s) > 0 {
			return
		}
		if patience > time.Minute {
			t.Fatal("nothing is under way in the server")
		}
	}
}

// writing returns the number of writes that are under way in the server.
func writing(t *testing.T, s *mysqltest.Server) (n int) {
	t.Helper()
	const count = "SELECT COUNT(*) FROM information_schema.processlist WHERE USER = '" + mysqltest.User +
		"' AND COMMAND IN ('Query', 'Execute') AND (INFO LIKE 'INSERT%' OR INFO LIKE 'UPDATE%')"
	noError(t, s.Root(t).QueryRowContext(ctx, count).Scan(&n))
	return n
}

// settles waits until no write is under way in the server.
func settles(t *testing.T, s *mysqltest.Server) {
	t.Helper()
	eventually(t, "nothing is written any more", func() bool { return writing(t, s) == 0 })
}

func nobodyHolds(t *testing.T, d *mysqllock.Driver, name string) {
	t.Helper()
	if e, err := d.Inspect(ctx, name); err != nil || len(e.Holders) > 0 {
		t.Errorf("%s is held: %+v, %v", name, e.Holders, err)
	}
}

// In REPEATABLE READ, the servers' default, a transaction that reads a missing name keeps
// others from inserting a row near it. A claim that waits for that must check the clock
// when it goes on.
func TestAClaimForANewNameThatWaitedIsNotGrantedAfterItsEnd(t *testing.T) {
	s, db, _ := fresh(t)
	d := openDriver(t, "mysql:"+s.DSN(name(t, db)))
	nobodyHolds(t, d, "job") // the tables are made
	tx := begin(t, db)
	if err := d.CheckLease(ctx, tx, fencetest.Lease("nosuch", 1)); !errors.Is(err, driver.ErrStale) {
		t.Fatal(err)
	}
	givesUp(t, s, d, mutex("other"))
	noError(t, tx.Rollback())
	settles(t, s)
	nobodyHolds(t, d, "other")
}

// A commit may hang after the clock was checked, for a backup, a disk or a replica. Until
// it ends, readers do not see it. The release of a claim that was given up meanwhile must
// not report that there is nothing to release.
func TestAClaimWhoseCommitHangsIsStillReleased(t *testing.T) {
	s, db, _ := fresh(t)
	d := openDriver(t, "mysql:"+s.DSN(name(t, db)))
	known := mutex("known")
	gets(t, d, known)
	releases(t, d, known)
	for _, name := range []string{"new", "known"} {
		backup, err := s.Root(t).Conn(ctx)
		noError(t, err)
		stage := func(stage string) {
			must(backup.ExecContext(ctx, "BACKUP STAGE "+stage))(t)
		}
		for _, to := range []string{"START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT"} {
			stage(to)
		}
		c := mutex(name)
		givesUp(t, s, d, c)
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		if err := d.Release(short, lease(c)); err == nil || errors.Is(err, driver.ErrNoSuchLease) {
			t.Errorf("%s: Release says %v while the claim is under way", name, err)
		}
		cancel()
		stage("END")
		settles(t, s)
		if err := d.Release(ctx, lease(c)); err != nil && !errors.Is(err, driver.ErrNoSuchLease) {
			t.Errorf("%s: Release: %v", name, err)
		}
		nobodyHolds(t, d, name)
		if err := backup.Close(); err != nil {
			t.Error(err)
		}
	}
}
