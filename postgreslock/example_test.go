package postgreslock_test

import (
	"context"
	"database/sql"
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

// A driver of its own, without the client over it.
func ExampleOpen() {
	d, err := postgreslock.Open(context.Background(), "postgres://app:secret@db.internal/app?schema=locks")
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
}

// Over the pool that the program has already.
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

// Over a sql.DB, of pgx.
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

// Whoever may not create tables lets an administrator run this.
func ExampleSchema() {
	text, err := postgreslock.Schema(&postgreslock.Options{Schema: "locks"})
	if err != nil {
		log.Fatal(err)
	}
	log.Print(text)
}

// Money moves only while the lease holds the name, whatever was paused or late.
func ExampleCheckLease() {
	pay := func(ctx context.Context, pool *pgxpool.Pool, l *pawl.Lease) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "UPDATE accounts SET paid = paid + 1"); err != nil {
				return err
			}
			return postgreslock.CheckLease(ctx, tx, l) // last, right before the commit
		})
	}
	_ = pay
}
