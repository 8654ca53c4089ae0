package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
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
// leases to one call, because two calls in one transaction can deadlock with another
// transaction or a renewal (error 1213).
//
// Use the ctx of Do, which ends when the lease is lost, for the statements, but not for
// BeginTx. docs/transactions.md says what the errors of Do mean then. After CheckLease
// has returned nil, the commit is safe however long it takes.
//
// # What does it lock?
//
// Call it last, right before Commit. The check is one statement for each name, in the
// order of the names. Each locks the row of its name, shared with other checks. Until the
// transaction ends, no client can renew, release or wait for the name, and a long
// transaction loses its own lease. Also end the transaction at once after pawl.ErrStale:
// if the name has no row, a transaction in REPEATABLE READ prevents other clients from
// inserting rows near it.
//
// In REPEATABLE READ or SERIALIZABLE, under innodb_snapshot_isolation (MariaDB's default
// from 11.6.2 on), the check fails with error 1020 if the lease was renewed since the
// transaction first read: repeat the transaction. READ COMMITTED has no such error.
//
// The transaction must be in the database of the locks, with tables of the default
// prefix; for another prefix use [LeaseChecker]. The user needs only SELECT on the table;
// before MySQL 8.0.22, by its manual, also UPDATE.
//
// The check refuses a lease that was released or lost. Release the lease after Commit, as
// Do does. Test it on a real server: the check refuses a lease of pawltest, which is in
// memory.
func CheckLease(ctx context.Context, tx *sql.Tx, leases ...driver.Lease) error {
	return checkLeases(ctx, tx, &Options{Prefix: defaultPrefix}, leases)
}

// LeaseChecker is the interface of a driver that checks leases in its own tables. Use it
// if these are not the default tables. [driver.As] finds it:
//
//	checker, _ := driver.As[mysqllock.LeaseChecker](d)
type LeaseChecker interface {
	// CheckLease is like the function [CheckLease], for the driver's own tables.
	CheckLease(ctx context.Context, tx *sql.Tx, leases ...driver.Lease) error
}

// CheckLease implements LeaseChecker.
func (d *lockDriver) CheckLease(ctx context.Context, tx *sql.Tx, leases ...driver.Lease) error {
	return checkLeases(ctx, tx, &d.store.Options, leases)
}

func checkLeases(ctx context.Context, tx *sql.Tx, o *Options, given []driver.Lease) error {
	leases, err := engine.LeasesOf(ctx, tx, given, engine.GrantedElsewhere("mysql", o.locationSuffix(), " prefix="))
	if err != nil {
		return err
	}
	table := "`" + o.Prefix + "names`"
	rows := engine.LockedRows{}
	for _, name := range leases.Names() {
		// One statement for several names could read all of a small table, and lock all
		// of its rows. SYSDATE is evaluated when the row is locked, see serverTime. Both
		// servers understand LOCK IN SHARE MODE.
		statement := "SELECT entry, " + serverTime + " FROM " + table + " WHERE name = " + literalOf(name) + " LOCK IN SHARE MODE"
		var stored []byte
		var now locktable.Instant
		err := tx.QueryRowContext(ctx, statement).Scan(&stored, &now)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			continue
		case isDeadlock(err):
			return leases.Failed(ctx, fmt.Errorf("%w (repeat the transaction: it conflicted with another one, or a lease was renewed since it began)", err))
		case err == nil:
			err = rows.Add(name, stored, now)
		}
		if err != nil {
			return leases.Failed(ctx, err)
		}
	}
	return leases.Stale(rows, table)
}
