package pawl_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memlock"
)

// A worker is the code to be tested. It does its job under a lock, a step a minute, and
// stops between two steps when the lock is lost.
type worker struct {
	locks *pawl.Client
	steps int
}

func (w *worker) run(ctx context.Context) error {
	return w.locks.Mutex("import").Do(ctx, func(ctx context.Context) error {
		for range 10 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Minute):
				w.steps++
			}
		}
		return nil
	})
}

// stopsWhenItsLockIsTaken tests the worker in virtual time: the ten minutes pass in an
// instant, and leases are renewed and expire as in real minutes. The backend is memory,
// with the clock of the bubble.
func stopsWhenItsLockIsTaken(t *testing.T) {
	ctx := context.Background()
	memory := memlock.NewMemory(nil)
	ours, err := pawl.New(memory.Driver(), nil)
	noError(t, err)
	defer ours.Close()
	other, err := pawl.New(memory.Driver(), nil)
	noError(t, err)
	defer other.Close()

	w := &worker{locks: ours}
	done := make(chan error, 1)
	go func() { done <- w.run(ctx) }()
	time.Sleep(3*time.Minute + time.Second)
	lease, err := other.Mutex("import").ForceLock(ctx)
	noError(t, err)
	if err := <-done; !errors.Is(err, pawl.ErrLost) {
		t.Errorf("the worker returned %v", err)
	}
	if w.steps != 3 {
		t.Errorf("the worker made %d steps, want 3", w.steps)
	}
	if err := lease.Release(ctx); err != nil {
		t.Error(err)
	}
}

// Code that locks is tested with memlock in a bubble of testing/synctest. It needs no
// injected clock, and the test does not wait. Close every client inside the bubble.
func Example_synctest() {
	_ = func(t *testing.T) { // func TestWorkerStopsWhenItsLockIsTaken(t *testing.T)
		synctest.Test(t, stopsWhenItsLockIsTaken)
	}
}
