package mysqllock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/fencetest"
	"github.com/pawl-go/pawl/mysqllock"
)

func TestCheckLease(t *testing.T) {
	for name, check := range fencetest.Checks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, db, d := freshDatabase(t)
			check(t, fencetest.SQL(d, db, mysqllock.CheckLease))
		})
	}
}

func TestTwoTransactionsMayCheckOneLease(t *testing.T) {
	_, db, d := freshDatabase(t)
	l := fencetest.Lease("job", gets(t, d, mutex("job")).Fence)
	if err := errors.Join(d.CheckLease(ctx, begin(t, db), l), mysqllock.CheckLease(ctx, begin(t, db), l)); err != nil {
		t.Error(err)
	}
}

// A lease records its tables. So a check in other tables returns ErrInvalid, and not
// ErrStale.
func TestCheckLeaseRefusesLeasesOfOtherTables(t *testing.T) {
	_, db, d := freshDatabase(t)
	other := driverOver(t, db, &mysqllock.Options{Prefix: "billing_"})
	fencetest.ChecksOtherTables(t, fencetest.SQL(d, db, mysqllock.CheckLease), fencetest.SQL(d, db, d.CheckLease), fencetest.SQL(other, db, other.CheckLease))
}

// In another database the lease is unknown.
func TestCheckLeaseFailsInAnotherDatabase(t *testing.T) {
	s, _, d := freshDatabase(t)
	g := gets(t, d, mutex("job"))
	_, otherDB, other := freshDatabase(t)
	gets(t, other, mutex("job"))
	if err := mysqllock.CheckLease(ctx, begin(t, otherDB), fencetest.Lease("job", g.Fence)); !errors.Is(err, driver.ErrStale) {
		t.Errorf("%v; want ErrStale", err)
	}
	withoutTables := begin(t, s.Open(t, s.NewDatabase(t)))
	if err := mysqllock.CheckLease(ctx, withoutTables, fencetest.Lease("job", g.Fence)); err == nil || errors.Is(err, driver.ErrStale) {
		t.Errorf("%v; want an error about missing tables", err)
	}
}

// If a row has changed since the transaction first read, for example by a renewal,
// MariaDB can refuse to lock it. The error has the hint to repeat the transaction.
func TestCheckLeaseInASnapshotHasAHint(t *testing.T) {
	s, db, d := freshDatabase(t)
	c := mutex("job")
	g := gets(t, d, c)
	for isolation, wantErr := range map[string]bool{"REPEATABLE-READ": true, "READ-COMMITTED": false} {
		pool := openWith(t, s, databaseOf(t, db), "innodb_snapshot_isolation=1&tx_isolation='"+isolation+"'")
		tx := begin(t, pool)
		exec(t, tx, "SELECT * FROM pawl_names")
		c.TTL += time.Hour // on a busy machine the lease may already last longer than one TTL
		renews(t, d, c)
		err := mysqllock.CheckLease(ctx, tx, fencetest.Lease("job", g.Fence))
		if wantErr != (err != nil) || wantErr && !strings.Contains(err.Error(), "repeat the transaction") {
			t.Errorf("%s: %v; want an error with a hint: %t", isolation, err, wantErr)
		}
		_ = tx.Rollback()
		again := begin(t, pool)
		if err := mysqllock.CheckLease(ctx, again, fencetest.Lease("job", g.Fence)); err != nil {
			t.Errorf("%s, in a new transaction: %v", isolation, err)
		}
		_ = again.Rollback()
	}
}
