package doctest

import (
	"context"

	"github.com/pawl-go/pawl"
)

// readmeLimitAndTry is the second block of code in the README. The first is Example of
// sqlitelock, and the third is a part of overPgxPool.
func readmeLimitAndTry(ctx context.Context, locks *pawl.Client, export, cleanUp job) error {
	err := locks.Semaphore("exports", 4).Do(ctx, export) // four at a time, over all machines
	if err != nil {
		return err
	}
	_, err = locks.Mutex("cleanup").TryDo(ctx, cleanUp) // skipped if another process is at it
	return err
}
