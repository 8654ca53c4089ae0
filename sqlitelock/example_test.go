package sqlitelock_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/sqlitelock"
)

// Locks for all processes of this host that open the same file.
func ExampleOpen() {
	folder, err := os.MkdirTemp("", "pawl-example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)

	ctx := context.Background()
	d, err := sqlitelock.Open(ctx, filepath.Join(folder, "locks.db"), &sqlitelock.Options{Retention: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	locks, err := pawl.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	fmt.Println(locks.Mutex("job").Do(ctx, func(context.Context) error { return nil }))
	// Output: <nil>
}
