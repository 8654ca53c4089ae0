// Fenced-sqlite shows a late write that is refused. A holder is paused, another client
// takes over its lock, and then the first holder writes as if nothing had happened. The
// database stores the highest fence that has written, and refuses the write.
//
//	go run ./examples/fenced-sqlite
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	_ "modernc.org/sqlite"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	_ "github.com/pawl-go/pawl/memlock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db, err := sql.Open("sqlite", ":memory:")
	check(err)
	db.SetMaxOpenConns(1) // each connection to ":memory:" has a database of its own
	defer db.Close()
	for _, sql := range []string{"CREATE TABLE accounts (balance integer)", "INSERT INTO accounts VALUES (100)", fence.SQLiteTable} {
		_, err = db.ExecContext(ctx, sql)
		check(err)
	}

	locks, err := pawl.Open(ctx, "mem:", nil)
	check(err)
	defer locks.Close()
	paused, err := locks.Mutex("account").Lock(ctx)
	check(err)
	current, err := locks.Mutex("account").ForceLock(ctx) // as if the first had been paused past its TTL
	check(err)

	fmt.Println("the holder writes:     ", write(ctx, db, current, 50))
	fmt.Println("the paused one writes: ", write(ctx, db, paused, -100))
}

// write changes the balance, unless the lease's fence is stale.
func write(ctx context.Context, db *sql.DB, lease *pawl.Lease, amount int) error {
	tx, err := db.BeginTx(context.WithoutCancel(ctx), nil) // a loss must not interrupt the commit
	if err != nil {
		return err
	}
	if err := fence.CheckSQLite(ctx, tx, "accounts", lease.Fence()); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if _, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance + ?", amount); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
