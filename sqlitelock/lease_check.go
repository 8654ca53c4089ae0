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
	"github.com/pawl-go/pawl/locktable"
)

// CheckLease makes a transaction depend on a lease: it returns an error that matches
// [driver.ErrStale] unless the lease holds its name at this moment, by the clock of this
// host. Otherwise no other claim can be granted the name until the transaction ends, even
// if the lease runs out before. So what the transaction writes is written while its lease
// holds the name, whatever was paused or late: no fence has to be kept beside the data.
//
//	tx, err := db.BeginTx(ctx, nil)
//	...                                                     // the work
//	if err := sqlitelock.CheckLease(ctx, tx, lease); err != nil {
//		return errors.Join(err, tx.Rollback())
//	}
//	return tx.Commit()
//
// lease is a *pawl.Lease.
//
// The transaction has to be on the file of the locks: the data is in tables beside
// theirs, or in a file of its own to whose connection that of the locks is attached
// (ATTACH 'locks.db' AS locks). Of several attached ones [Driver.CheckLease] knows its
// own. It has to be one of modernc.org/sqlite: another SQLite in the same process knows
// nothing of the locks that this one has on the file, and is refused.
//
// It takes SQLite's write lock on the file before it looks, if the transaction has not
// got it, so that what it sees stays so. If the transaction has read from the file before
// that, and somebody has written since, SQLite gives it the lock no more
// (SQLITE_BUSY_SNAPSHOT), and it is to be repeated; transactions that begin with BEGIN
// IMMEDIATE (_txlock=immediate in the DSN) have no such trouble. A connection that cannot
// write is refused.
//
// Call it last, right before Commit: until the transaction ends nothing at all can be
// locked, renewed or released in the file. With tables beside the locks, or with BEGIN
// IMMEDIATE, that is so from the first write on. A transaction that lasts loses its own
// lease.
func CheckLease(ctx context.Context, tx *sql.Tx, lease driver.Lease) error {
	return leaseCheck{tx: tx, now: time.Now}.run(ctx, lease.StoredName(), lease.Fence())
}

// CheckLease is the function [CheckLease] for the file of this driver.
func (d *Driver) CheckLease(ctx context.Context, tx *sql.Tx, lease driver.Lease) error {
	return leaseCheck{tx: tx, now: d.table.Options.now, file: d.table.files.opened[0], path: d.table.path}.run(ctx, lease.StoredName(), lease.Fence())
}

// A leaseCheck checks a lease inside a transaction.
type leaseCheck struct {
	tx   *sql.Tx
	now  func() time.Time
	file os.FileInfo // that the locks are in; nil: in the only one that has any
	path string      // its name, as far as it is known
}

func (c leaseCheck) run(ctx context.Context, name string, fence uint64) error {
	if err := errors.Join(driver.ValidateName(name), driver.ValidateFence(fence)); err != nil {
		return err
	}
	err := c.look(ctx, name, fence)
	_, invalid := errors.AsType[*driver.InvalidError](err)
	if err == nil || invalid || errors.Is(err, driver.ErrStale) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	hint, permanent := advice(err)
	if extendedCode(err) == sqlite3.SQLITE_BUSY_SNAPSHOT {
		hint = "repeat the transaction; it has read before somebody wrote, which BEGIN IMMEDIATE (_txlock=immediate) prevents"
	}
	return &driver.Error{Backend: backend(c.path), Op: "check lease", Name: name, Hint: hint, Permanent: permanent, Err: err}
}

func (c *leaseCheck) look(ctx context.Context, name string, fence uint64) error {
	if err := c.sameLibrary(ctx); err != nil {
		return err
	}
	schema, err := c.lock(ctx)
	if err != nil {
		return err
	}
	now := c.now() // only now: it may have waited for the lock
	var stored []byte
	err = c.tx.QueryRowContext(ctx, "SELECT entry FROM "+schema+".entries WHERE name = ?", []byte(name)).Scan(&stored)
	if errors.Is(err, sql.ErrNoRows) {
		return stale(name, fence)
	} else if err != nil {
		return err
	}
	e, err := locktable.Decode(stored)
	if err != nil {
		return fmt.Errorf("the row of %s: %w", quote(name), err)
	}
	if !e.Holds(locktable.At(now), fence) {
		return stale(name, fence)
	}
	return nil
}

func stale(name string, fence uint64) error {
	return fmt.Errorf("%w (%q, fence %d)", driver.ErrStale, name, fence)
}

// lock takes the write lock on the file of the locks. It returns the schema that the file
// is for the transaction, quoted. Nothing is read before: who has read gets the lock only
// if nobody has written since.
func (c *leaseCheck) lock(ctx context.Context) (schema string, err error) {
	files, err := c.files(ctx)
	if err != nil {
		return "", err
	}
	for _, f := range files {
		err := c.lockOne(ctx, f.schema)
		if foreign(err) {
			continue
		}
		c.path = cmp.Or(c.path, f.path)
		switch {
		case err != nil:
			return "", err
		case schema != "":
			return "", c.refused("has several files with locks", "Driver.CheckLease, which knows its own")
		}
		schema = f.schema
	}
	if schema == "" {
		return "", c.refused("is on no file with locks", "one on the file of the locks, or with it attached")
	}
	return schema, nil
}

// attached is a file that a transaction is on.
type attached struct{ schema, path string }

// files are those that may have the locks.
func (c *leaseCheck) files(ctx context.Context) (all []attached, err error) {
	rows, err := c.tx.QueryContext(ctx, "PRAGMA database_list")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var number int
		var f attached
		if err := rows.Scan(&number, &f.schema, &f.path); err != nil {
			return nil, err
		}
		if f.path == "" { // in memory
			continue
		}
		f.schema = `"` + strings.ReplaceAll(f.schema, `"`, `""`) + `"`
		if info, err := os.Stat(f.path); c.file == nil || err == nil && os.SameFile(info, c.file) {
			all = append(all, f)
		}
	}
	return all, rows.Err()
}

// lockOne takes the write lock on one file, if it has locks in it, and makes sure that it
// is one of ours. It waits while others write, as steps do.
func (c *leaseCheck) lockOne(ctx context.Context, schema string) error {
	// It changes no row, and begins to write all the same.
	//nolint:gosec // the schema is quoted
	statement := "UPDATE " + schema + ".entries SET entry = entry WHERE name IS NULL AND (SELECT cursor FROM " + schema + ".tidying) IS NULL"
	_, bounded := ctx.Deadline()
	began := time.Now()
	_, err := c.tx.ExecContext(ctx, statement)
	for n := 0; isBusy(err) && extendedCode(err) != sqlite3.SQLITE_BUSY_SNAPSHOT; n++ {
		if !bounded && time.Since(began) > busyTimeout {
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

// foreign reports whether an error says that a file has no locks in it.
func foreign(err error) bool {
	return errors.Is(err, errForeign) || code(err) == sqlite3.SQLITE_ERROR && strings.Contains(err.Error(), "no such ")
}

// sameLibrary makes sure that the transaction's SQLite is ours. The kernel's locks on a
// file are those of a whole process, and each copy of SQLite keeps its own books of them:
// two in one process do not exclude each other, and damage the file.
func (c *leaseCheck) sameLibrary(ctx context.Context) error {
	theirs, err := library(func(query string, f func(string)) error {
		rows, err := c.tx.QueryContext(ctx, query)
		if err != nil {
			return err
		}
		defer rows.Close()
		var s string
		for rows.Next() {
			if err := rows.Scan(&s); err != nil {
				return err
			}
			f(s)
		}
		return rows.Err()
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, sql.ErrTxDone), code(err) != 0:
		return err
	}
	own, ownErr := ownLibrary()
	if ownErr != nil {
		return ownErr
	}
	if err != nil || theirs != own {
		return c.refused("is not one of modernc.org/sqlite", "one of the driver that the locks use, for two of them do not exclude each other in one process")
	}
	return nil
}

// library is what tells a copy of SQLite from others: its version, and how it was
// compiled. To ask reads from no file.
func library(ask func(query string, f func(string)) error) (string, error) {
	var said strings.Builder
	for _, query := range []string{"SELECT sqlite_source_id()", "PRAGMA compile_options"} {
		if err := ask(query, func(s string) { said.WriteString(s + "\n") }); err != nil {
			return "", err
		}
	}
	return said.String(), nil
}

// ownLibrary is the one that this package uses.
var ownLibrary = sync.OnceValues(func() (string, error) {
	c, err := connectTo(":memory:")
	if err != nil {
		return "", err
	}
	said, err := library(c.texts)
	return said, errors.Join(err, c.close())
})

func (c *leaseCheck) refused(problem, allowed string) error {
	return &driver.InvalidError{What: "transaction", Problem: problem, Allowed: allowed}
}
