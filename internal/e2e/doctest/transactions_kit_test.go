package doctest

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/mysqllock"
	"github.com/pawl-go/pawl/postgreslock"
)

// The code of docs/transactions.md.

func transfer(ctx context.Context, locks *pawl.Client, pool *pgxpool.Pool) error {
	accounts := pawl.All(locks.Mutex("account:7"), locks.Mutex("account:3"))
	err := accounts.Do(ctx, func(ctx context.Context) error {
		seven, _ := pawl.LeaseOf(ctx, "account:7")
		three, _ := pawl.LeaseOf(ctx, "account:3")
		whole := context.WithoutCancel(ctx) // a loss must not cut the commit off
		return pgx.BeginFunc(whole, pool, func(tx pgx.Tx) error {
			if err := move(ctx, tx); err != nil { // your statements
				return err
			}
			return postgreslock.CheckLease(ctx, tx, seven, three) // last, right before the commit
		})
	})
	var lost *pawl.LostError
	if errors.As(err, &lost) && lost.Finished {
		return nil // the transaction has committed under the leases: do not repeat it
	}
	return err
}

// move is the work of transfer and runOnce, and the step between it and the check.
var move func(ctx context.Context, tx pgx.Tx) error

func pay(ctx context.Context, locks *pawl.Client, db *sql.DB) error {
	err := locks.Mutex("account:7").Do(ctx, func(ctx context.Context) error {
		lease, _ := pawl.LeaseOf(ctx, "account:7")
		tx, err := db.BeginTx(context.WithoutCancel(ctx), nil) // a loss must not cut the commit off
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - 10 WHERE id = 7"); err != nil {
			return err
		}
		if err := mysqllock.CheckLease(ctx, tx, lease); err != nil { // or postgreslock.CheckLeaseSQL
			return err
		}
		return tx.Commit()
	})
	var lost *pawl.LostError
	if errors.As(err, &lost) && lost.Finished {
		return nil // the transaction has committed under the lease: do not repeat it
	}
	return err
}

func attached(ctx context.Context, db *sql.DB, lockFile string) (*sql.Conn, error) {
	conn, err := db.Conn(ctx) // of sql.Open("sqlite", "/var/lib/app/data.db")
	if err != nil {
		return nil, err
	}
	_, err = conn.ExecContext(ctx, "ATTACH ? AS locks", lockFile)
	return conn, err
}

func loseLease(ctx context.Context, other *pawl.Client, name string) error {
	entry, err := other.Inspect(ctx, name)
	if err != nil {
		return err
	}
	return other.Break(ctx, name, entry.Fence, &pawl.BreakOptions{Delay: -1})
}

func runOnce(ctx context.Context, locks *pawl.Client, pool *pgxpool.Pool, key string) error {
	series := locks.Once("payday", pawl.WithAtLeastOnce())
	_, err := series.Do(ctx, key, func(ctx context.Context) error {
		lease, _ := pawl.LeaseOf(ctx, "payday")
		return pgx.BeginFunc(context.WithoutCancel(ctx), pool, func(tx pgx.Tx) error {
			mark, err := tx.Exec(ctx, "INSERT INTO done VALUES ($1) ON CONFLICT DO NOTHING", key)
			if err != nil || mark.RowsAffected() == 0 {
				return err // nil: it was committed before
			}
			if err := move(ctx, tx); err != nil { // the task
				return err
			}
			return postgreslock.CheckLease(ctx, tx, lease)
		})
	})
	return err // after an error, call it again with this key
}

// checkSQL is CheckLease of mysqllock and sqlitelock, or CheckLeaseSQL of postgreslock.
type checkSQL func(ctx context.Context, tx *sql.Tx, leases ...driver.Lease) error

// payIn is pay with any check. between runs before the check.
func payIn(ctx context.Context, tx *sql.Tx, check checkSQL, between func() error, lease *pawl.Lease) error {
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - 10 WHERE id = 7"); err != nil {
		return err
	}
	if err := between(); err != nil {
		return err
	}
	if err := check(ctx, tx, lease); err != nil {
		return err
	}
	return tx.Commit()
}
