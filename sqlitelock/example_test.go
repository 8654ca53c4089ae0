package sqlitelock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/sqlitelock" // for URLs that begin with sqlite:
)

// The README shows this example. It has no checked output, because it writes to a folder
// of a service.
func Example() {
	ctx := context.Background()
	locks, err := pawl.Open(ctx, "sqlite:/var/lib/app/locks.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	err = locks.Mutex("report:nightly").Do(ctx, func(ctx context.Context) error {
		fence, _ := pawl.FenceOf(ctx, "report:nightly") // greater than all fences before it
		return writeReport(ctx, fence)                  // ctx ends when the lock is lost
	})
	if err != nil { // errors.Is(err, pawl.ErrLost): the lock was lost meanwhile
		log.Print(err)
	}
}

func writeReport(context.Context, uint64) error { return nil }

// Locks for all processes of this host that open the same file.
func ExampleOpen() {
	folder, err := os.MkdirTemp("", "pawl-example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)

	ctx := context.Background()
	d, err := sqlitelock.OpenFile(ctx, filepath.Join(folder, "locks.db"), &sqlitelock.Options{Retention: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	locks, err := pawl.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	fmt.Println(locks.Mutex("job").Do(ctx, func(context.Context) error { return nil }))
	// Output: <nil>
}

// The data is in another file, to which the file of the locks is attached. The
// transaction commits only while the lease holds the name.
func ExampleCheckLease() {
	pay := func(ctx context.Context, locks *pawl.Client, work *sql.Conn) error {
		err := locks.Mutex("account:7").Do(ctx, func(ctx context.Context) error {
			lease, _ := pawl.LeaseOf(ctx, "account:7")
			// Once for each connection, outside of a transaction:
			// work.ExecContext(ctx, "ATTACH '/var/lib/pawl/locks.db' AS locks")
			tx, err := work.BeginTx(context.WithoutCancel(ctx), nil) // a loss must not cancel the commit
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if _, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - 10 WHERE id = 7"); err != nil {
				return err
			}
			if err := sqlitelock.CheckLease(ctx, tx, lease); err != nil { // last, right before Commit
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
