package pawl_test

import (
	"errors"
	"testing"

	"github.com/pawl-go/pawl"
)

func TestLockExcludesOtherClients(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.two()
		lease := must(t)(a.Mutex("x").Lock(background))
		_, err := b.Mutex("x").TryLock(background)
		isError(t, err, pawl.ErrHeld)
		var held *pawl.HeldError
		if !errors.As(err, &held) || held.Holders != 1 || held.Holder.Fence != lease.Fence() {
			t.Fatalf("the error does not name the holder: %v", err)
		}
		must(t)(b.Mutex("y").TryLock(background))
		noError(t, lease.Release(background))
		next := must(t)(b.Mutex("x").TryLock(background))
		if next.Fence() <= lease.Fence() {
			t.Fatalf("fence %d after %d", next.Fence(), lease.Fence())
		}
	})
}

func TestReadersShareAndWritersDoNot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.two()
		r1 := must(t)(a.RWMutex("x").RLock(background))
		r2 := must(t)(b.RWMutex("x").TryRLock(background))
		_, err := b.RWMutex("x").TryLock(background)
		isError(t, err, pawl.ErrHeld)
		noError(t, r1.Release(background))
		_, err = b.RWMutex("x").TryLock(background)
		isError(t, err, pawl.ErrHeld)
		noError(t, r2.Release(background))
		must(t)(b.RWMutex("x").TryLock(background))
	})
}

func TestSemaphoreCountsPermitsOfAllClients(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.two()
		two := must(t)(a.Semaphore("gpu", 4).Acquire(background, 2))
		must(t)(b.Semaphore("gpu", 4).TryAcquire(background, 2))
		_, err := b.Semaphore("gpu", 4).TryAcquire(background, 1)
		isError(t, err, pawl.ErrHeld)
		_, err = b.Mutex("gpu").TryLock(background)
		isError(t, err, pawl.ErrHeld)
		noError(t, two.Release(background))
		must(t)(b.Semaphore("gpu", 4).TryAcquire(background, 2))
	})
}

// Each claim has an identity of its own: one lock value may be held several times, and
// releasing an old lease again does not touch the others.
func TestOneProcessHoldsSeveralPermitsEachByItself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(nil)
		s := c.Semaphore("x", 2)
		first, second := must(t)(s.Acquire(background, 1)), must(t)(s.Acquire(background, 1))
		noError(t, first.Release(background))
		third := must(t)(s.Acquire(background, 1))
		noError(t, first.Release(background)) // again
		if e := w.entry("x"); len(e.Holders) != 2 || e.Holders[0].Fence != second.Fence() || e.Holders[1].Fence != third.Fence() {
			t.Errorf("%+v", e)
		}
		noError(t, errors.Join(second.Err(), third.Err()))
	})
}
