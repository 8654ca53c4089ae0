package sqlitelock

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/locktable"
)

// CheckLease makes a transaction depend on leases. It returns an error that matches
// pawl.ErrStale, and names the lease, unless each lease holds its name at this moment. If
// it returns nil, no other claim can be granted one of these names until the transaction
// ends, even if a lease expires before. So the transaction commits only under its leases,
// even if the process was paused: the data needs no fence. The example has the code
// around it.
//
// A lease is a *pawl.Lease: [driver.Lease] says which ones a check accepts. Pass all
// leases to one call. For a lease of another file the check finds no row, and returns
// pawl.ErrStale.
//
// Use the ctx of Do, which ends when the lease is lost, for the statements, but not for
// BeginTx. docs/transactions.md says what the errors of Do mean then. After CheckLease
// has returned nil, the commit is safe however long it takes. Release the lease after
// Commit, as Do does. Release waits until the transaction ends, and fails with
// ErrUnavailable if that takes long; the client repeats it.
//
// # Which transactions?
//
// The transaction has to be on the file of the locks. Keep the data in the same file, or
// in another file, and attach the file of the locks to its connection (ATTACH 'locks.db'
// AS locks). If several such files are attached, use [LeaseChecker], which knows its own
// file. The transaction has to use modernc.org/sqlite: CheckLease refuses another copy of
// SQLite in the same process, because the two copies do not see each other's file locks.
//
// The check first takes SQLite's write lock on the file, unless the transaction has it,
// so that no other connection can write after it has read. If the transaction has read
// from the file before, and another connection has written since, SQLite refuses the lock
// (SQLITE_BUSY_SNAPSHOT): repeat the transaction. Transactions that begin with BEGIN
// IMMEDIATE (_txlock=immediate in the DSN) avoid that. The check refuses a connection
// that cannot write.
//
// Call it last, right before Commit: until the transaction ends, no client can lock,
// renew or release anything in the file. The lock begins earlier if the data is in the
// same file (at the first write), and with BEGIN IMMEDIATE (at BEGIN). A long transaction
// loses its own lease.
//
// The check refuses a lease that was released or lost. Test it on a file in t.TempDir:
// the check refuses a lease of pawltest, which is in memory.
func CheckLease(ctx context.Context, tx *sql.Tx, leases ...driver.Lease) error {
	return leaseCheck{tx: tx, now: time.Now}.run(ctx, leases)
}

// LeaseChecker is the interface of a driver that checks leases in its own file. Use it if
// several files with locks are attached. [driver.As] finds it:
//
//	checker, _ := driver.As[sqlitelock.LeaseChecker](d)
type LeaseChecker interface {
	// CheckLease is like the function [CheckLease], for the driver's own file.
	CheckLease(ctx context.Context, tx *sql.Tx, leases ...driver.Lease) error
}

// CheckLease implements LeaseChecker.
func (d *lockDriver) CheckLease(ctx context.Context, tx *sql.Tx, leases ...driver.Lease) error {
	return leaseCheck{tx: tx, now: d.table.Options.now, file: d.table.files.opened[0], path: d.table.path}.run(ctx, leases)
}

// A leaseCheck checks leases inside a transaction.
type leaseCheck struct {
	tx   *sql.Tx
	now  func() time.Time
	file os.FileInfo // the file of the locks; nil means the only attached file with locks
	path string      // the name of this file, if known
}

func (c leaseCheck) run(ctx context.Context, given []driver.Lease) error {
	leases, err := engine.LeasesOf(ctx, c.tx, given, engine.GrantedElsewhere("sqlite", ""))
	if err != nil {
		return err
	}
	err = c.checkLeases(ctx, leases)
	_, invalid := errors.AsType[*driver.InvalidError](err)
	switch {
	case err == nil, invalid, errors.Is(err, driver.ErrStale):
		return err
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return leases.Failed(ctx, err)
	}
	hint, permanent := advice(err)
	if extendedCode(err) == sqlite3.SQLITE_BUSY_SNAPSHOT {
		hint = "repeat the transaction; it has read before another connection wrote, which BEGIN IMMEDIATE (_txlock=immediate) prevents"
	}
	failed := &driver.Error{Backend: backend(c.path), Op: "check lease", Hint: hint, Permanent: permanent, Err: err}
	if len(leases) == 1 {
		failed.Name = leases[0].Name
	}
	return failed
}

func (c *leaseCheck) checkLeases(ctx context.Context, leases engine.Leases) error {
	if err := c.checkLibrary(ctx); err != nil {
		return err
	}
	schema, err := c.lock(ctx)
	if err != nil {
		return err
	}
	now := locktable.At(c.now()) // after lock, which may have waited
	rows := engine.LockedRows{}
	for _, name := range leases.Names() {
		var stored []byte
		err := c.tx.QueryRowContext(ctx, "SELECT entry FROM "+schema+".entries WHERE name = ?", []byte(name)).Scan(&stored)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err == nil {
			err = rows.Add(name, stored, now)
		}
		if err != nil {
			return err
		}
	}
	return leases.Stale(rows, c.path)
}

// lock takes the write lock on the file of the locks, and returns the quoted name of its
// schema in the transaction. It does not read before, because SQLite refuses the lock to
// a transaction that has read if another one has written since.
func (c *leaseCheck) lock(ctx context.Context) (schema string, err error) {
	files, err := c.files(ctx)
	if err != nil {
		return "", err
	}
	for _, f := range files {
		err := c.lockFile(ctx, f.schema)
		if hasNoLocks(err) {
			continue
		}
		c.path = cmp.Or(c.path, f.path)
		switch {
		case err != nil:
			return "", err
		case schema != "":
			return "", c.invalidTx("has several files with locks", "LeaseChecker, which knows its own file")
		}
		schema = f.schema
	}
	if schema == "" {
		return "", c.invalidTx("is on no file with locks", "a transaction on the file of the locks, or with that file attached")
	}
	return schema, nil
}

// attachedFile is a file that is attached to the transaction's connection.
type attachedFile struct{ schema, path string }

// files returns the files that may have the locks.
func (c *leaseCheck) files(ctx context.Context) (all []attachedFile, err error) {
	var number int
	var f attachedFile
	err = sqlswap.ForEachRow(ctx, c.tx, "PRAGMA database_list", nil, []any{&number, &f.schema, &f.path}, func() error {
		f.schema = `"` + strings.ReplaceAll(f.schema, `"`, `""`) + `"`
		info, err := os.Stat(f.path)
		inMemory := f.path == ""
		if !inMemory && (c.file == nil || err == nil && os.SameFile(info, c.file)) {
			all = append(all, f)
		}
		return nil
	})
	return all, err
}

// lockFile takes the write lock on a file with locks in it, and checks that the file is
// Pawl's. It waits while other connections write, as steps do.
func (c *leaseCheck) lockFile(ctx context.Context, schema string) error {
	// The statement changes no row, but takes the write lock.
	//nolint:gosec // the schema is quoted
	statement := "UPDATE " + schema + ".entries SET entry = entry WHERE name IS NULL AND (SELECT cursor FROM " + schema + ".tidying) IS NULL"
	_, hasDeadline := ctx.Deadline()
	began := time.Now()
	_, err := c.tx.ExecContext(ctx, statement)
	for n := 0; isBusy(err) && extendedCode(err) != sqlite3.SQLITE_BUSY_SNAPSHOT; n++ {
		if !hasDeadline && time.Since(began) > busyTimeout {
			return err
		}
		if ended := pause(ctx, n, nil); ended != nil {
			return fmt.Errorf("%w (%w)", ended, err)
		}
		_, err = c.tx.ExecContext(ctx, statement)
	}
	var app, version int64
	for pragma, into := range map[string]*int64{"application_id": &app, "user_version": &version} {
		if err == nil {
			err = c.tx.QueryRowContext(ctx, "PRAGMA "+schema+"."+pragma).Scan(into)
		}
	}
	if err == nil && (app != applicationID || version != schemaVersion) {
		err = errForeign
	}
	return err
}

var errForeign = errors.New("it is the database of another application, or of another version of Pawl")

// hasNoLocks reports whether an error means that a file has no locks in it.
func hasNoLocks(err error) bool {
	return errors.Is(err, errForeign) || code(err) == sqlite3.SQLITE_ERROR && strings.Contains(err.Error(), "no such ")
}

// checkLibrary checks that the transaction uses the same SQLite as this package. The
// kernel's file locks belong to the whole process, and each copy of SQLite has its own
// record of them. So two copies in one process do not exclude each other, and can damage
// the file.
func (c *leaseCheck) checkLibrary(ctx context.Context) error {
	theirs, err := libraryID(ctx, c.tx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, sql.ErrTxDone), code(err) != 0:
		return err
	}
	own, ownErr := ownLibraryID()
	if ownErr != nil {
		return ownErr
	}
	if err != nil || theirs != own {
		return c.invalidTx("does not use modernc.org/sqlite", "a transaction of the SQLite copy that the locks use, because two copies in one process do not exclude each other")
	}
	return nil
}

// libraryID identifies a copy of SQLite by its version and its compile options. These
// queries read no file.
func libraryID(ctx context.Context, q sqlswap.Querier) (string, error) {
	var all, s string
	for _, query := range []string{"SELECT sqlite_source_id()", "PRAGMA compile_options"} {
		err := sqlswap.ForEachRow(ctx, q, query, nil, []any{&s}, func() error {
			all += s + "\n"
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return all, nil
}

// ownLibraryID identifies the copy that this package uses. That copy registers itself as
// "sqlite".
var ownLibraryID = sync.OnceValues(func() (string, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return "", err
	}
	id, err := libraryID(context.Background(), db)
	return id, errors.Join(err, db.Close())
})

func (c *leaseCheck) invalidTx(problem, allowed string) error {
	return &driver.InvalidError{Argument: "transaction", Problem: problem, Allowed: allowed}
}
