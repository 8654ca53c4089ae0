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

// Guard makes a transaction depend on a lease: it returns an error that matches
// [driver.ErrStale] unless the lease with this fence holds the name at this moment, by
// the clock of this database. Else nobody can be granted the name in its place until the
// transaction ends, also if the lease runs out before. So what the transaction writes is
// written while its lease holds the name, whatever was paused or late: no fence has to be
// kept beside the data.
//
//	tx, err := pool.Begin(ctx)
//	...                                                     // the work
//	if err := postgreslock.Guard(ctx, tx, "nightly", l.Fence()); err != nil {
//		return errors.Join(err, tx.Rollback(ctx))
//	}
//	return tx.Commit(ctx)
//
// tx is a pgx.Tx, or a *sql.Tx of any driver, in the database that the locks are in, and
// in READ COMMITTED; at a higher level a lease that was renewed since the transaction
// began fails it with SQLSTATE 40001, and it is to be repeated.
//
// Call it last, right before Commit. It is one statement, which locks the row of the name
// until the transaction ends. Meanwhile the name can neither be renewed nor released nor
// waited for, so a transaction that lasts loses its own lease, and those of all who share
// the name. Guards of one name stand in line with its renewals: its readers, or the
// holders of its permits, commit one after the other. At 2 ms from Guard to the end of
// Commit that is 500 transactions a second for the name. Keep what takes long before the
// Guard. A goroutine that guards one name in two open transactions waits for itself until
// ctx ends.
//
// A transaction that guards several names does so in the order of their bytes: two that
// do it in different orders wait for each other, and the server ends one (SQLSTATE
// 40P01). A Guard in a nested transaction of pgx is in a savepoint: if that is rolled
// back, the check is undone, and nothing keeps others out. Guard in the outermost one.
//
// The user needs SELECT and UPDATE on the table. It is that of the default schema; for
// another there is [Driver.Guard]. A lease that passes from goroutine to goroutine of one
// client is one lease for the server: which of them has it only the client knows.
func Guard(ctx context.Context, tx any, name string, fence uint64) error {
	o, _ := (*Options)(nil).withDefaults()
	return guard(ctx, tx, o.table("locks"), name, fence)
}

// Guard is the function [Guard] for the tables of this driver, in the database that tx is
// in.
func (d *Driver) Guard(ctx context.Context, tx any, name string, fence uint64) error {
	return guard(ctx, tx, d.server.options.table("locks"), name, fence)
}

func guard(ctx context.Context, tx any, table, name string, fence uint64) error {
	if err := errors.Join(driver.ValidateName(name), driver.ValidateFence(fence)); err != nil {
		return err
	}
	// The time is asked above the locking, as in lock. The entry is answered in
	// hexadecimal: pgx cannot read what a session with bytea_output=escape answers.
	//nolint:gosec // the name of the table was quoted when the options were read
	statement := "WITH locked AS MATERIALIZED (SELECT entry FROM " + table + " WHERE name = " + text("$1") + " FOR NO KEY UPDATE)" +
		" SELECT pg_catalog.encode(entry, 'hex'), " + clock + " FROM locked"
	var row interface{ Scan(dest ...any) error }
	switch tx := tx.(type) {
	case pgx.Tx:
		row = tx.QueryRow(ctx, statement, []byte(name))
	case *sql.Tx:
		row = tx.QueryRowContext(ctx, statement, []byte(name))
	default:
		return &driver.InvalidError{What: "transaction", Problem: fmt.Sprintf("is a %T", tx), Allowed: "a pgx.Tx, a *sql.Tx"}
	}
	var digits string
	var now int64
	err := row.Scan(&digits, &now)
	switch {
	case errors.Is(err, sql.ErrNoRows): // pgx.ErrNoRows is that, too
		return stale(name, fence)
	case err != nil:
		return fmt.Errorf("pawl: guard %q: %w", name, err)
	}
	stored, err := hex.DecodeString(digits)
	if err != nil {
		return fmt.Errorf("pawl: guard %q: %w", name, err)
	}
	e, err := locktable.Decode(stored)
	if err != nil {
		return fmt.Errorf("pawl: guard %q: %w", name, err)
	}
	if !e.Holds(locktable.Instant(now), fence) {
		return stale(name, fence)
	}
	return nil
}

func stale(name string, fence uint64) error {
	return fmt.Errorf("%w (%q, fence %d)", driver.ErrStale, name, fence)
}
