package postgreslock_test

import (
	"context"
	"database/sql"
	"errors"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/postgreslock"
)

// By URL: in the schema "pawl" of the database.
func Example() {
	ctx := context.Background()
	locks, err := pawl.Open(ctx, "postgres://app:secret@db.internal/app?sslmode=require", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	err = locks.Mutex("report:nightly").Do(ctx, func(ctx context.Context) error {
		return nil // the work
	})
	if err != nil {
		log.Print(err)
	}
}

// A driver without a client.
func ExampleOpen() {
	d, err := postgreslock.Open(context.Background(), "postgres://app:secret@db.internal/app?schema=locks")
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
}

// With the program's own pool.
func ExampleNew() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://app:secret@db.internal/app")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	d, err := postgreslock.New(pool, nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := pawl.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// With a sql.DB of pgx.
func ExampleNewDB() {
	db, err := sql.Open("pgx", "postgres://app:secret@db.internal/app")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	_ = stdlib.GetDefaultDriver() // importing stdlib registers "pgx"
	d, err := postgreslock.NewDB(db, &postgreslock.Options{Schema: "public", Prefix: "pawl_"})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
}

// If the user may not create tables, an administrator runs these statements.
func ExampleSchema() {
	text, err := postgreslock.Schema(&postgreslock.Options{Schema: "locks"})
	if err != nil {
		log.Fatal(err)
	}
	log.Print(text)
}

// The transfer commits only while the leases hold their names, even after a pause.
func ExampleCheckLease() {
	transfer := func(ctx context.Context, locks *pawl.Client, pool *pgxpool.Pool) error {
		accounts := pawl.All(locks.Mutex("account:7"), locks.Mutex("account:3"))
		err := accounts.Do(ctx, func(ctx context.Context) error {
			seven, _ := pawl.LeaseOf(ctx, "account:7")
			three, _ := pawl.LeaseOf(ctx, "account:3")
			commitCtx := context.WithoutCancel(ctx) // a loss must not cancel the commit
			return pgx.BeginFunc(commitCtx, pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "UPDATE accounts SET balance = balance - 10 WHERE id = 7"); err != nil {
					return err
				}
				if _, err := tx.Exec(ctx, "UPDATE accounts SET balance = balance + 10 WHERE id = 3"); err != nil {
					return err
				}
				return postgreslock.CheckLease(ctx, tx, seven, three) // last, right before the commit
			})
		})
		var lost *pawl.LostError
		if errors.As(err, &lost) && lost.Finished {
			return nil // the transaction has committed under the leases: do not repeat it
		}
		if errors.Is(err, pawl.ErrStale) || errors.Is(err, pawl.ErrLost) {
			log.Print("another holder may be at work: ", err)
		}
		return err
	}
	_ = transfer
}
