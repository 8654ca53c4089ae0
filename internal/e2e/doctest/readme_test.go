package doctest

import (
	"context"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/pawltest"
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

func TestTheREADMELimitsAndTries(t *testing.T) {
	backend := pawltest.New(t)
	locks := backend.Client(nil)
	exports, cleanUps := 0, 0
	export := func(context.Context) error { exports++; return nil }
	cleanUp := func(context.Context) error { cleanUps++; return nil }
	for round := range 2 {
		if round == 1 {
			hold(t, backend, "cleanup")
		}
		noError(t, readmeLimitAndTry(t.Context(), locks, export, cleanUp))
	}
	if exports != 2 || cleanUps != 1 {
		t.Errorf("%d exports, %d clean-ups", exports, cleanUps)
	}
}
