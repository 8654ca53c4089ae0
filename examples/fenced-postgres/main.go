// Fenced-postgres writes to PostgreSQL under a lock that is kept in the same database.
// A check in the transaction refuses to commit unless the lease still holds the lock,
// and keeps others out until it has: no fence is stored beside the data.
//
//	go run ./examples/fenced-postgres postgres://USER@HOST/DATABASE
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/postgreslock"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: fenced-postgres postgres://USER@HOST/DATABASE")
	}
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Args[1])
	check(err)
	defer pool.Close()
	_, err = pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS pawl_example (at timestamptz)")
	check(err)
	driver, err := postgreslock.New(pool, nil)
	check(err)
	locks, err := pawl.New(driver, nil)
	check(err)
	defer locks.Close()

	lease, err := locks.Mutex("pawl-example").Lock(ctx)
	check(err)
	fmt.Println("while it holds the lock:", write(ctx, pool, lease))
	check(lease.Release(ctx))
	fmt.Println("after that:             ", write(ctx, pool, lease))
}

func write(ctx context.Context, pool *pgxpool.Pool, lease *pawl.Lease) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "INSERT INTO pawl_example VALUES (now())"); err != nil {
		return errors.Join(err, tx.Rollback(ctx))
	}
	if err := postgreslock.CheckLease(ctx, tx, lease); err != nil { // last, right before Commit
		return errors.Join(err, tx.Rollback(ctx))
	}
	return tx.Commit(ctx)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
