package doctest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/memlock"
)

// The tests of docs/testing.md.

func TestTheImportIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &importer{locks: clientOf(t, memlock.New(nil))}
		if err := i.run(t.Context()); err != nil || i.steps != 10 {
			t.Errorf("%d steps, %v", i.steps, err)
		}
	})
}

func TestTheSecondImportWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := memlock.NewMemory(nil)
		other := clientOf(t, memory.Driver())
		lease, err := other.Mutex("import").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := &importer{locks: clientOf(t, memory.Driver())}
		done := make(chan error, 1)
		go func() { done <- i.run(t.Context()) }()

		time.Sleep(time.Hour) // virtual: the lease of the other is renewed for all of it
		if i.steps != 0 {
			t.Errorf("it made %d steps beside another", i.steps)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil || i.steps != 10 {
			t.Errorf("%d steps, %v", i.steps, err)
		}
	})
}

func TestTheImportStopsWhenItsLockIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := memlock.NewMemory(nil)
		i := &importer{locks: clientOf(t, memory.Driver())}
		done := make(chan error, 1)
		go func() { done <- i.run(t.Context()) }()

		time.Sleep(3*time.Minute + time.Second)
		operator := clientOf(t, memory.Driver())
		if _, err := operator.Mutex("import").ForceLock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, pawl.ErrLost) || i.steps != 3 {
			t.Errorf("%d steps, %v", i.steps, err)
		}
	})
}

func TestTheImportStopsWhenTheDatabaseIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := memlock.NewMemory(nil)
		backend := &outage{Driver: memory.Driver()}
		i := &importer{locks: clientOf(t, backend)}
		done := make(chan error, 1)
		go func() { done <- i.run(t.Context()) }()

		time.Sleep(3*time.Minute + time.Second)
		backend.down.Store(true)
		began := time.Now()
		err := <-done
		if lost, ok := errors.AsType[*pawl.LostError](err); !ok || lost.Reason != pawl.ReasonUnreachable || i.steps != 3 {
			t.Errorf("%d steps, %v", i.steps, err)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it stopped %v after its last renewal, when others may have had the lock", took)
		}
	})
}

func TestALateWriteIsRefused(t *testing.T) {
	memory := memlock.NewMemory(nil)
	one, two := clientOf(t, memory.Driver()), clientOf(t, memory.Driver())
	var store fence.Memory // or fence.CheckPostgres, ... in the transaction of the write
	old, err := one.Mutex("report").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	taken, err := two.Mutex("report").ForceLock(t.Context()) // and one has not heard of it
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Check("report", taken.Fence()); err != nil {
		t.Error(err)
	}
	if err := store.Check("report", old.Fence()); !errors.Is(err, pawl.ErrStale) {
		t.Errorf("the late write: %v", err)
	}
}

func TestNoTwoAreInsideAtOnce(t *testing.T) {
	memory := memlock.NewMemory(nil)
	inside, most := 0, 0 // protected by the lock: the race detector would see if not
	var all sync.WaitGroup
	for range 20 {
		locks := clientOf(t, memory.Driver())
		all.Go(func() {
			err := locks.Mutex("counter").Do(t.Context(), func(context.Context) error {
				inside++
				most = max(most, inside)
				inside--
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	if all.Wait(); most != 1 {
		t.Errorf("%d were inside at once", most)
	}
}

func TestAHandleIsNoGoodWhenItsLeaseIsOver(t *testing.T) {
	clock := memlock.NewClock(time.Now())
	memory := memlock.NewMemory(&memlock.Options{Now: clock.Now})
	one, two := clientOf(t, memory.Driver()), clientOf(t, memory.Driver())
	lease, err := one.Mutex("deploy", pawl.WithTTL(10*time.Minute)).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	handle, err := lease.Detach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(10 * time.Minute)
	if _, err := two.Attach(t.Context(), handle); !errors.Is(err, pawl.ErrLost) {
		t.Errorf("attached: %v", err)
	}
}
