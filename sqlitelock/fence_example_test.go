package sqlitelock_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pawl-go/pawl/fence"
)

// The fence check is one statement in the transaction of the write. If the fence is
// stale, the transaction is rolled back.
func Example_fence() {
	ctx := context.Background()
	db, _ := sql.Open("sqlite", ":memory:")
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection has its own database in memory
	_, _ = db.ExecContext(ctx, fence.SQLiteTable)
	_, _ = db.ExecContext(ctx, "CREATE TABLE account (balance integer); INSERT INTO account VALUES (0)")

	deposit := func(f uint64) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := fence.CheckSQLite(ctx, tx, "account", f); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance + 10"); err != nil {
			return err
		}
		return tx.Commit()
	}
	fmt.Println(deposit(1795316400000000))
	fmt.Println(deposit(1795316431000000)) // the next holder
	fmt.Println(deposit(1795316400000000)) // the first holder, which was paused
	fmt.Println(deposit(0))                // a client without a lock
	// Output:
	// <nil>
	// <nil>
	// pawl: stale: the fence 1795316400000000 for "account" is below 1795316431000000: its holder has lost the lock
	// pawl: fence is 0, which FenceOf returns without a lease on that name; allowed: what Lease.Fence returned
}
