package mysqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/mysqllock"
)

// By URL.
func ExampleOpen() {
	ctx := context.Background()
	d, err := mysqllock.Open(ctx, "mysql://user:password@localhost:3306/app")
	if err != nil {
		log.Fatal(err) // has a hint, and never the password
	}
	locks, err := pawl.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// With the program's own pool.
func ExampleNew() {
	db, err := sql.Open("mysql", "user:password@tcp(localhost:3306)/app")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	d, err := mysqllock.New(db, &mysqllock.Options{Prefix: "billing_"})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	fmt.Println(d.Properties().Location)
	// Output: mysql of the caller prefix=billing_
}

// The payment commits only while the lease holds the name, even after a pause.
func ExampleCheckLease() {
	pay := func(ctx context.Context, locks *pawl.Client, db *sql.DB) error {
		err := locks.Mutex("account:7").Do(ctx, func(ctx context.Context) error {
			lease, _ := pawl.LeaseOf(ctx, "account:7")
			tx, err := db.BeginTx(context.WithoutCancel(ctx), nil) // a loss must not cancel the commit
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if _, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - 10 WHERE id = 7"); err != nil {
				return err
			}
			if err := mysqllock.CheckLease(ctx, tx, lease); err != nil { // last, right before Commit
				return err // errors.Is(err, pawl.ErrStale): another holder may be at work
			}
			return tx.Commit()
		})
		var lost *pawl.LostError
		if errors.As(err, &lost) && lost.Finished {
			return nil // the transaction has committed under the lease: do not repeat it
		}
		return err
	}
	_ = pay
}
