package sqlitelock

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/fencetest"
)

// openPool opens a pool of connections to a file.
func openPool(t testing.TB, path, parameters string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?"+parameters)
	noError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// connOf returns a connection of a pool.
func connOf(t testing.TB, db *sql.DB) *sql.Conn {
	t.Helper()
	c, err := db.Conn(ctx)
	noError(t, err)
	t.Cleanup(func() { _ = c.Close() }) // waits for the end of its transaction
	return c
}

const immediateParameters = "_txlock=immediate&_pragma=busy_timeout(180000)"

// newEngine returns a new file with locks, and its transactions.
func newEngine(t *testing.T) fencetest.Engine {
	path := newPath(t)
	return fencetest.SQL(open(t, path, nil), openPool(t, path, immediateParameters), CheckLease)
}

func TestCheckLeasePassesOnlyTheHolder(t *testing.T) {
	for _, parameters := range []string{immediateParameters, ""} {
		c, path := clock(), newPath(t)
		d := open(t, path, &Options{now: c.Now})
		e := fencetest.SQL(d, openPool(t, path, parameters), d.CheckLease)
		e.Sleep = c.Advance
		fencetest.ChecksTheHolder(t, e)
	}
}

func TestCheckLeaseChecksEveryLease(t *testing.T) {
	fencetest.ChecksSeveral(t, newEngine(t))
	fencetest.ChecksInAnyOrder(t, newEngine(t))
	fencetest.ChecksTheClient(t, newEngine(t))
}

// No other claim gets the name between the check and the end of the transaction, no
// matter how the transaction began, and which file has its data.
func TestNoClaimIsGrantedUntilTheCheckedTransactionEnds(t *testing.T) {
	for name, parameters := range map[string]string{"beside the locks": "", "immediate": immediateParameters, "attached": ""} {
		t.Run(name, func(t *testing.T) {
			c, path := clock(), newPath(t)
			db := openPool(t, path, parameters)
			if name == "attached" {
				db = openPool(t, filepath.Join(t.TempDir(), "work.db"), parameters)
				db.SetMaxOpenConns(1) // ATTACH works on one connection
				runSQL(t, db, "ATTACH '"+path+`' AS "the ""locks"`)
			}
			e := fencetest.SQL(open(t, path, &Options{now: c.Now}), db, CheckLease) // uses the real clock
			e.Sleep = c.Advance
			fencetest.ChecksUntilTheEnd(t, e)
		})
	}
}

// A transaction that has read keeps its snapshot, which may have an old state of a lock.
func TestALeaseCheckRefusesAnOldSnapshot(t *testing.T) {
	path := newPath(t)
	d, db := open(t, path, nil), openPool(t, path, "")
	runSQL(t, db, "CREATE TABLE work (n INT)")
	g := gets(t, d, mutex("job"))
	tx := begin(t, db)
	var n int
	noError(t, tx.QueryRowContext(ctx, "SELECT count(*) FROM work").Scan(&n))
	noError(t, d.Break(ctx, "job", g.Fence, 0, driver.Owner{Host: "operator"}))
	gets(t, d, mutex("job"))
	err := CheckLease(ctx, tx, fencetest.Lease("job", g.Fence))
	if wantDriverError(t, err, false, "BEGIN IMMEDIATE"); errors.Is(err, driver.ErrStale) {
		t.Errorf("%v; want a hint to repeat the transaction", err)
	}
}

// While another connection writes, a check waits, but not longer than its ctx.
func TestALeaseCheckWaitsForWriters(t *testing.T) {
	path := newPath(t)
	d, db := open(t, path, nil), openPool(t, path, "")
	g := gets(t, d, mutex("job"))
	unlock := writeLocked(t, path)
	shortCtx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if err := d.CheckLease(shortCtx, begin(t, db), fencetest.Lease("job", g.Fence)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v; want the end of its ctx", err)
	}
	checked, waitCtx := make(chan error, 1), patientCtx(t)
	go func() { checked <- d.CheckLease(waitCtx, begin(t, db), fencetest.Lease("job", g.Fence)) }()
	time.Sleep(50 * time.Millisecond)
	unlock()
	if err := <-checked; err != nil {
		t.Error(err)
	}
}

func TestTransactionsThatCannotBeCheckedAreRefused(t *testing.T) {
	path, other := newPath(t), newPath(t)
	d := open(t, path, nil)
	l := fencetest.Lease("job", gets(t, d, mutex("job")).Fence)
	gets(t, open(t, other, nil), mutex("job"))
	plain := filepath.Join(t.TempDir(), "work.db")
	runSQL(t, openPool(t, plain, ""), "CREATE TABLE entries (name TEXT, entry TEXT)") // of another application
	for _, file := range []string{plain, ":memory:", other} {
		tx := begin(t, openPool(t, file, ""))
		fencetest.WantInvalid(t, d.CheckLease(ctx, tx, l), "transaction is on no file with locks")
		_ = tx.Rollback()
	}
	fencetest.WantInvalid(t, CheckLease(ctx, begin(t, openPool(t, plain, "")), l), "transaction is on no file with locks")

	both := connOf(t, openPool(t, path, ""))
	runSQL(t, both, "ATTACH '"+other+"' AS other")
	tx := begin(t, both)
	fencetest.WantInvalid(t, CheckLease(ctx, tx, l), "LeaseChecker")
	if err := d.CheckLease(ctx, tx, l); err != nil {
		t.Errorf("the driver, which knows its own file: %v", err)
	}
	_ = tx.Rollback()
	if err := d.CheckLease(ctx, tx, l); !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("a transaction that has ended: %v; want sql.ErrTxDone", err)
	}
}

// A connection that cannot write cannot take the write lock.
func TestALeaseCheckOfAConnectionThatCannotWriteIsRefused(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	g := gets(t, d, mutex("job"))
	for _, parameters := range []string{"mode=ro", "_pragma=query_only(1)"} {
		err := CheckLease(ctx, begin(t, openPool(t, path, parameters)), fencetest.Lease("job", g.Fence))
		wantDriverError(t, err, true, "writable")
	}
	tx, err := openPool(t, path, "").BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	noError(t, err)
	defer tx.Rollback()
	if err := CheckLease(ctx, tx, fencetest.Lease("job", g.Fence)); err != nil {
		t.Errorf("a transaction with ReadOnly, which SQLite ignores: %v", err)
	}
}

// Another copy of SQLite in this process would not see the file locks of this copy.
func TestALeaseCheckOfAnotherSQLiteIsRefused(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	g := gets(t, d, mutex("job"))
	own := ownLibraryID
	defer func() { ownLibraryID = own }()
	ownLibraryID = func() (string, error) { return "2024-01-01 of another copy", nil }
	fencetest.WantInvalid(t, CheckLease(ctx, begin(t, openPool(t, path, "")), fencetest.Lease("job", g.Fence)), "modernc.org/sqlite")
}

func TestNoCheckedWriteIsLost(t *testing.T) { fencetest.ChecksEachWrite(t, newEngine(t)) }
