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
	"github.com/pawl-go/pawl/pawltest"
)

// The tests of docs/testing.md.

// An importer is the code under test. It does its job under a lock, one step a minute.
// When the lock is lost, it stops before the next step.
type importer struct {
	locks *pawl.Client
	steps int
}

func (i *importer) run(ctx context.Context) error {
	return i.locks.Mutex("import").Do(ctx, func(ctx context.Context) error {
		for range 10 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Minute):
				i.steps++
			}
		}
		return nil
	})
}

func TestTheImportIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &importer{locks: pawltest.New(t).Client(nil)}
		if err := i.run(t.Context()); err != nil || i.steps != 10 {
			t.Errorf("%d steps, %v", i.steps, err)
		}
	})
}

func TestTheSecondImportWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := pawltest.New(t)
		lease, err := backend.Client(nil).Mutex("import").Lock(t.Context()) // another process
		if err != nil {
			t.Fatal(err)
		}
		i := &importer{locks: backend.Client(nil)}
		done := make(chan error, 1)
		go func() { done <- i.run(t.Context()) }()

		time.Sleep(time.Hour) // virtual: the lease of the other is renewed for all of it
		backend.AssertWaiting("import", 1)
		if i.steps != 0 {
			t.Errorf("it made %d steps beside another", i.steps)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil || i.steps != 10 {
			t.Errorf("%d steps, %v", i.steps, err)
		}
		backend.AssertFree("import")
	})
}

func TestTheSecondSkipsItsRun(t *testing.T) {
	backend := pawltest.New(t)
	lease, err := backend.Client(nil).Mutex("nightly").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ran, err := backend.Client(nil).Mutex("nightly").TryDo(t.Context(), func(context.Context) error {
		return errors.New("it ran")
	})
	if ran || err != nil {
		t.Errorf("ran: %v, %v", ran, err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheImportStopsWhenItsLockIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := pawltest.New(t)
		i := &importer{locks: backend.Client(nil)}
		done := make(chan error, 1)
		go func() { done <- i.run(t.Context()) }()

		time.Sleep(3*time.Minute + time.Second)
		backend.Break("import")
		if err := <-done; !errors.Is(err, pawl.ErrLost) || i.steps != 3 {
			t.Errorf("%d steps, %v", i.steps, err)
		}
	})
}

func TestTheImportStopsWhenTheDatabaseIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := pawltest.New(t)
		i := &importer{locks: backend.Client(nil)}
		done := make(chan error, 1)
		go func() { done <- i.run(t.Context()) }()

		time.Sleep(3*time.Minute + time.Second)
		backend.Fail(nil) // or Hang, which is worse
		began := time.Now()
		err := <-done
		if lost, ok := errors.AsType[*pawl.LostError](err); !ok || lost.Reason != pawl.ReasonUnreachable || i.steps != 3 {
			t.Errorf("%d steps, %v", i.steps, err)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it stopped after %v, when others may have had the lock", took)
		}
	})
}

func TestALateWriteIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := pawltest.New(t)
		var store fence.Memory // or fence.CheckPostgres, ... in the transaction of the write
		old, err := backend.Client(nil).Mutex("report").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		backend.Expire("report") // as if its holder was paused: it does not know it yet
		err = backend.Client(nil).Mutex("report").Do(t.Context(), func(ctx context.Context) error {
			fence, _ := pawl.FenceOf(ctx, "report")
			return store.Check("report", fence)
		})
		if err != nil {
			t.Error(err)
		}
		if err := store.Check("report", old.Fence()); !errors.Is(err, pawl.ErrStale) {
			t.Errorf("the late write: %v", err)
		}
		<-old.Done() // its next renewal finds the loss
	})
}

func TestNoTwoAreInsideAtOnce(t *testing.T) {
	backend := pawltest.New(t)
	inside, most := 0, 0 // protected by the lock: the race detector would see if not
	var all sync.WaitGroup
	for range 20 {
		locks := backend.Client(nil)
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
	backend := pawltest.New(t)
	lease, err := backend.Client(nil).Mutex("deploy", pawl.WithTTL(10*time.Minute)).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	handle, err := lease.Detach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	backend.Jump(10 * time.Minute)
	if _, err := backend.Client(nil).Attach(t.Context(), handle); !errors.Is(err, pawl.ErrLost) {
		t.Errorf("attached: %v", err)
	}
}
