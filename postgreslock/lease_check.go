package postgreslock

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

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
// leases to one call, because two calls in one transaction can deadlock with another
// transaction (SQLSTATE 40P01). For a *sql.Tx there is [CheckLeaseSQL].
//
// Use the ctx of Do, which ends when the lease is lost, for the statements, but not for
// Begin, Commit and Rollback. docs/transactions.md says what the errors of Do mean then.
// After CheckLease has returned nil, the commit is safe however long it takes.
//
// # What does it lock?
//
// Call it last, right before Commit. The check is one statement, which locks the rows of
// the names until the transaction ends. Meanwhile no client can renew, release or wait
// for the names. So a long transaction loses its own leases, and all other leases of the
// names. Checks and renewals of one name wait for each other. So its readers, or the
// holders of its permits, commit one after the other. At 2 ms from the check to the end
// of Commit, that is 500 transactions a second for the name. A goroutine that checks one
// name in two open transactions deadlocks until ctx ends.
//
// The transaction must be in the database of the locks, and in READ COMMITTED. In
// REPEATABLE READ or SERIALIZABLE, the check fails with SQLSTATE 40001 if the lease was
// renewed since the transaction began: repeat the transaction. A check in a nested
// transaction of pgx is in a savepoint. Rolling back the savepoint also ends the row lock
// of the check, so check in the outermost transaction.
//
// The user needs SELECT and UPDATE on the table. The function reads the table of the
// default schema; for another schema use [LeaseChecker].
//
// The check refuses a lease that was released or lost. Release the lease after Commit, as
// Do does. Test it on a real server: the check refuses a lease of pawltest, which is in
// memory.
func CheckLease(ctx context.Context, tx pgx.Tx, leases ...driver.Lease) error {
	return checkLeases(ctx, tx, pgxRows(tx), defaultOptions(), leases)
}

// CheckLeaseSQL is [CheckLease] for a transaction of database/sql, of any driver. The
// error matches pawl.ErrStale if a lease does not hold its name.
func CheckLeaseSQL(ctx context.Context, tx *sql.Tx, leases ...driver.Lease) error {
	return checkLeases(ctx, tx, sqlRows(tx), defaultOptions(), leases)
}

// LeaseChecker is the interface of a driver that checks leases in its own tables. Use it
// if these are not the default tables. [driver.As] finds it:
//
//	checker, _ := driver.As[postgreslock.LeaseChecker](d)
type LeaseChecker interface {
	// CheckLease is like the function [CheckLease], for the driver's own tables.
	CheckLease(ctx context.Context, tx pgx.Tx, leases ...driver.Lease) error

	// CheckLeaseSQL is like the function [CheckLeaseSQL], for the driver's own tables.
	CheckLeaseSQL(ctx context.Context, tx *sql.Tx, leases ...driver.Lease) error
}

// CheckLease implements LeaseChecker.
func (d *lockDriver) CheckLease(ctx context.Context, tx pgx.Tx, leases ...driver.Lease) error {
	return checkLeases(ctx, tx, pgxRows(tx), d.store.options, leases)
}

// CheckLeaseSQL implements LeaseChecker.
func (d *lockDriver) CheckLeaseSQL(ctx context.Context, tx *sql.Tx, leases ...driver.Lease) error {
	return checkLeases(ctx, tx, sqlRows(tx), d.store.options, leases)
}

// queryRows runs a query inside of a transaction. It scans each row into the variables of
// into, and then calls each.
type queryRows func(ctx context.Context, statement string, args, into []any, each func() error) error

func pgxRows(tx pgx.Tx) queryRows {
	return func(ctx context.Context, statement string, args, into []any, each func() error) error {
		rows, err := tx.Query(ctx, statement, args...)
		if err == nil {
			_, err = pgx.ForEachRow(rows, into, each)
		}
		return err
	}
}

func sqlRows(tx *sql.Tx) queryRows {
	return func(ctx context.Context, statement string, args, into []any, each func() error) error {
		return sqlswap.ForEachRow(ctx, tx, statement, args, into, each)
	}
}

// defaultOptions returns the options of a driver that is made without options.
func defaultOptions() *Options {
	o, _ := (*Options)(nil).withDefaults()
	return &o
}

func checkLeases(ctx context.Context, tx any, query queryRows, o *Options, given []driver.Lease) error {
	leases, err := engine.LeasesOf(ctx, tx, given, engine.GrantedElsewhere("postgres", o.locationSuffix(), " schema=", " prefix="))
	if err != nil {
		return err
	}
	table := o.table("locks")
	var placeholders []string
	var names []any
	for i, name := range leases.Names() {
		placeholders, names = append(placeholders, toText(placeholder(i+1))), append(names, []byte(name))
	}
	// The outer SELECT reads the time: in the target list of the locking SELECT itself,
	// the time would be from before the wait for a locked row. It returns the name and
	// the entry in hexadecimal, because pgx cannot read the bytes of a session with
	// bytea_output=escape.
	statement := "WITH locked AS MATERIALIZED (SELECT name, entry FROM " + table + " WHERE name IN (" + strings.Join(placeholders, ", ") +
		") ORDER BY name FOR NO KEY UPDATE)" +
		" SELECT pg_catalog.encode(" + toBytes("name") + ", 'hex'), pg_catalog.encode(entry, 'hex'), " + clock + " FROM locked"
	rows := engine.LockedRows{}
	var name, entry string
	var now int64
	err = query(ctx, statement, names, []any{&name, &entry, &now}, func() error {
		n, err := hex.DecodeString(name)
		if err != nil {
			return err
		}
		e, err := hex.DecodeString(entry)
		if err != nil {
			return err
		}
		return rows.Add(string(n), e, locktable.Instant(now))
	})
	switch {
	case isRetryable(err):
		return leases.Failed(ctx, fmt.Errorf("%w (repeat the transaction: it conflicted with another one, or a lease was renewed since it began)", err))
	case err != nil:
		return leases.Failed(ctx, err)
	}
	return leases.Stale(rows, table)
}
