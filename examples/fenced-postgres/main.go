// Fenced-postgres writes to PostgreSQL under two locks in the same database. A check in
// the transaction fails unless both leases still hold their locks, and keeps other
// clients out until the transaction ends. So no fence is stored with the data.
//
//	go run ./examples/fenced-postgres postgres://USER@HOST/DATABASE
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/postgreslock"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: fenced-postgres postgres://USER@HOST/DATABASE")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
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

	var from, to *pawl.Lease
	err = pawl.All(locks.Mutex("pawl-example:from"), locks.Mutex("pawl-example:to")).Do(ctx, func(ctx context.Context) error {
		from, _ = pawl.LeaseOf(ctx, "pawl-example:from")
		to, _ = pawl.LeaseOf(ctx, "pawl-example:to")
		return write(ctx, pool, from, to)
	})
	var lost *pawl.LostError
	if errors.As(err, &lost) && lost.Finished {
		err = nil // the transaction has committed under the leases: do not repeat it
	}
	switch {
	case errors.Is(err, pawl.ErrStale), errors.Is(err, pawl.ErrLost):
		log.Fatal("another holder may be at work: ", err)
	case err != nil:
		log.Fatal(err)
	}
	fmt.Println("while it holds the locks:", err)
	fmt.Println("after that:              ", write(ctx, pool, from, to))
}

func write(ctx context.Context, pool *pgxpool.Pool, from, to *pawl.Lease) error {
	txCtx := context.WithoutCancel(ctx) // a loss must not interrupt the commit
	return pgx.BeginFunc(txCtx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO pawl_example VALUES (now())"); err != nil {
			return err
		}
		return postgreslock.CheckLease(ctx, tx, from, to) // last, right before the commit
	})
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
