package engine_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl/internal/engine"
)

// Go may be called while Close waits, and no function is lost. With a WaitGroup alone
// that would be a data race.
func TestGoRunsEachFunctionDuringClose(t *testing.T) {
	for range 100 {
		var b engine.Background
		var callers sync.WaitGroup
		var done atomic.Int64
		for range 4 {
			callers.Go(func() {
				for range 10 {
					b.Go(func() { done.Add(1) })
				}
			})
		}
		b.Close()
		callers.Wait()
		if n := done.Load(); n != 40 {
			t.Fatalf("%d of 40 functions ran", n)
		}
	}
}
