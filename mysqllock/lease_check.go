package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

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
//	tx, err := db.BeginTx(ctx, nil)
//	...                                                     // the work
//	if err := mysqllock.CheckLease(ctx, tx, lease); err != nil {
//		return errors.Join(err, tx.Rollback())
//	}
//	return tx.Commit()
//
// lease is a *pawl.Lease.
//
// Call it last, right before Commit. It is one statement, which locks the row of the
// name, shared with other checks: until the transaction ends the name can neither be
// renewed nor released nor waited for, and a transaction that lasts loses its own lease.
// A Release of the same lease waits for it. End the transaction at once after ErrStale,
// too: where the name has no row, one in REPEATABLE READ keeps others from making rows
// near it.
//
// A transaction that checks several leases does so in the order of their names, as the
// driver renews them. In another order the two can wait for each other: the server then
// ends one of them with error 1213, and the transaction has to be repeated. So it does,
// with 1020, in REPEATABLE READ under innodb_snapshot_isolation, MariaDB's default from
// 11.6.2 on, if the lease was renewed since the transaction first read. READ COMMITTED
// knows no such error.
//
// The transaction has to be one in the database that the driver works on, with tables of
// the default prefix; for another prefix there is [Driver.CheckLease]. The user needs
// SELECT on the table, no more; before MySQL 8.0.22, by its manual, UPDATE as well. A
// lease that passes from goroutine to goroutine of one client is one lease for the
// server: which of them has it only the client knows.
func CheckLease(ctx context.Context, tx *sql.Tx, lease driver.Lease) error {
	return checkLease(ctx, tx, "`"+defaultPrefix+"names`", lease)
}

// CheckLease is the function [CheckLease] for the tables of this driver, in the database
// that tx is in.
func (d *Driver) CheckLease(ctx context.Context, tx *sql.Tx, lease driver.Lease) error {
	return checkLease(ctx, tx, d.store.names, lease)
}

func checkLease(ctx context.Context, tx *sql.Tx, table string, lease driver.Lease) error {
	name, fence := lease.StoredName(), lease.Fence()
	if err := errors.Join(driver.ValidateName(name), driver.ValidateFence(fence)); err != nil {
		return err
	}
	// SYSDATE is looked at with the row locked, see serverTime. LOCK IN SHARE MODE is
	// what both servers understand.
	statement := "SELECT entry, " + serverTime + " FROM " + table + " WHERE name = " + blob(name) + " LOCK IN SHARE MODE"
	var stored []byte
	var now locktable.Instant
	err := tx.QueryRowContext(ctx, statement).Scan(&stored, &now)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return stale(name, fence)
	case isDeadlock(err):
		return fmt.Errorf("pawl: check the lease of %q: %w (repeat the transaction: another one was in its way, or has renewed the lease since it began)", name, err)
	case err != nil:
		return fmt.Errorf("pawl: check the lease of %q: %w", name, err)
	}
	e, err := locktable.Decode(stored)
	if err != nil {
		return fmt.Errorf("pawl: check the lease of %q: %w", name, err)
	}
	if !e.Holds(now, fence) {
		return stale(name, fence)
	}
	return nil
}

func stale(name string, fence uint64) error {
	return fmt.Errorf("%w (%q, fence %d)", driver.ErrStale, name, fence)
}
