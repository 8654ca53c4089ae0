package postgreslock

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// CheckLease makes a transaction depend on a lease: it returns an error that matches
// [driver.ErrStale] unless the lease holds its name at this moment, by the clock of this
// database. Otherwise no other claim can be granted the name until the transaction ends,
// even if the lease runs out before. So what the transaction writes is written while its
// lease holds the name, whatever was paused or late: no fence has to be kept beside the
// data.
//
//	tx, err := pool.Begin(ctx)
//	...                                                     // the work
//	if err := postgreslock.CheckLease(ctx, tx, lease); err != nil {
//		return errors.Join(err, tx.Rollback(ctx))
//	}
//	return tx.Commit(ctx)
//
// lease is a *pawl.Lease. tx is in the database that the locks are in, and in READ
// COMMITTED; at a higher level a lease that was renewed since the transaction began fails
// it with SQLSTATE 40001, and it is to be repeated. For a *sql.Tx there is
// [CheckLeaseSQL].
//
// Call it last, right before Commit. It is one statement, which locks the row of the name
// until the transaction ends. Meanwhile the name can neither be renewed nor released nor
// waited for, so a transaction that lasts loses its own lease, and those of all who share
// the name. Checks of one name stand in line with its renewals: its readers, or the
// holders of its permits, commit one after the other. At 2 ms from the check to the end
// of Commit that is 500 transactions a second for the name. Do what takes long before the
// check. A goroutine that checks one name in two open transactions waits for itself until
// ctx ends.
//
// A transaction that checks several names does so in the order of their bytes: two that
// do it in different orders wait for each other, and the server ends one (SQLSTATE
// 40P01). A check in a nested transaction of pgx is in a savepoint: if that is rolled
// back, the check is undone, and nothing keeps others out. Check in the outermost one.
//
// The user needs SELECT and UPDATE on the table. It is that of the default schema; for
// another there is [Driver.CheckLease]. A lease that passes from goroutine to goroutine
// of one client is one lease for the server: which of them has it only the client knows.
func CheckLease(ctx context.Context, tx pgx.Tx, lease driver.Lease) error {
	return checkLease(ctx, pgxRow(tx), defaultLocks(), lease)
}

// CheckLeaseSQL is [CheckLease] for a transaction of database/sql, of any driver.
func CheckLeaseSQL(ctx context.Context, tx *sql.Tx, lease driver.Lease) error {
	return checkLease(ctx, sqlRow(tx), defaultLocks(), lease)
}

// CheckLease is the function [CheckLease] for the tables of this driver, in the database
// that tx is in.
func (d *Driver) CheckLease(ctx context.Context, tx pgx.Tx, lease driver.Lease) error {
	return checkLease(ctx, pgxRow(tx), d.server.options.table("locks"), lease)
}

// CheckLeaseSQL is the function [CheckLeaseSQL] for the tables of this driver.
func (d *Driver) CheckLeaseSQL(ctx context.Context, tx *sql.Tx, lease driver.Lease) error {
	return checkLease(ctx, sqlRow(tx), d.server.options.table("locks"), lease)
}

// queryRow asks for one row inside of a transaction.
type queryRow func(ctx context.Context, statement string, args ...any) interface{ Scan(dest ...any) error }

func pgxRow(tx pgx.Tx) queryRow {
	return func(ctx context.Context, statement string, args ...any) interface{ Scan(dest ...any) error } {
		return tx.QueryRow(ctx, statement, args...)
	}
}

func sqlRow(tx *sql.Tx) queryRow {
	return func(ctx context.Context, statement string, args ...any) interface{ Scan(dest ...any) error } {
		return tx.QueryRowContext(ctx, statement, args...)
	}
}

// defaultLocks is the table of a driver without options.
func defaultLocks() string {
	o, _ := (*Options)(nil).withDefaults()
	return o.table("locks")
}

func checkLease(ctx context.Context, query queryRow, table string, lease driver.Lease) error {
	name, fence := lease.StoredName(), lease.Fence()
	if err := errors.Join(driver.ValidateName(name), driver.ValidateFence(fence)); err != nil {
		return err
	}
	// The time is asked above the locking, as in lock. The entry is answered in
	// hexadecimal: pgx cannot read what a session with bytea_output=escape answers.
	statement := "WITH locked AS MATERIALIZED (SELECT entry FROM " + table + " WHERE name = " + text("$1") + " FOR NO KEY UPDATE)" +
		" SELECT pg_catalog.encode(entry, 'hex'), " + clock + " FROM locked"
	var digits string
	var now int64
	err := query(ctx, statement, []byte(name)).Scan(&digits, &now)
	switch {
	case errors.Is(err, sql.ErrNoRows): // pgx.ErrNoRows is that, too
		return stale(name, fence)
	case err != nil:
		return fmt.Errorf("pawl: check the lease of %q: %w", name, err)
	}
	stored, err := hex.DecodeString(digits)
	if err != nil {
		return fmt.Errorf("pawl: check the lease of %q: %w", name, err)
	}
	e, err := locktable.Decode(stored)
	if err != nil {
		return fmt.Errorf("pawl: check the lease of %q: %w", name, err)
	}
	if !e.Holds(locktable.Instant(now), fence) {
		return stale(name, fence)
	}
	return nil
}

func stale(name string, fence uint64) error {
	return fmt.Errorf("%w (%q, fence %d)", driver.ErrStale, name, fence)
}
